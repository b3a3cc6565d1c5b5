// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/await"
)

// wire is a TCP proxy to the API server that can be cut.
type wire struct {
	t        *testing.T
	target   string
	address  string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// newWire returns a wire and a client configuration that uses it.
func newWire(t *testing.T, config *rest.Config) (*wire, *rest.Config) {
	t.Helper()
	host := config.Host
	if parsed, err := url.Parse(config.Host); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	l := &wire{t: t, target: host, address: "127.0.0.1:0"}
	l.restore()
	t.Cleanup(l.cut)
	config = rest.CopyConfig(config)
	config.Host = "https://" + l.address
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = name
	return l, config
}

// restore accepts connections.
func (l *wire) restore() {
	l.t.Helper()
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.listener, l.address = listener, listener.Addr().String()
	l.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.wait.Go(func() { l.join(conn) })
		}
	})
}

// join copies between a connection and the API server until one side closes.
func (l *wire) join(conn net.Conn) {
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		conn.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn, server)
	l.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			pair[0].Close()
			pair[1].Close()
		})
	}
	both.Wait()
}

// cut closes all connections and refuses new ones.
func (l *wire) cut() {
	l.listener.Close()
	l.mu.Lock()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
	l.mu.Unlock()
}

// TestOutage checks that probing continues while the API server can't be reached, and that the
// current states and the current plan are transferred afterwards.
func TestOutage(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("yes", answer{stdout: "before"})
	w.setAnswer("other", answer{stdout: "other"})
	w.plan(w.pod("p", "yes"))
	line, config := newWire(t, w.config)
	w.startAgentWith(config)
	w.reported("p yes", succeeded, "before")
	w.eventually(func() (bool, string) { return len(w.events()) == 1, fmt.Sprintf("events: %v", w.events()) })

	line.cut()
	w.setAnswer("yes", answer{stdout: "in between", code: 1})
	w.ranAgain("yes", 4)
	w.setAnswer("yes", answer{stdout: "at last", code: 1})
	w.plan(w.pod("p", "yes", "other"))
	w.ranAgain("yes", 4)
	if state := w.states()["p yes"]; state.State != succeeded {
		t.Fatalf("a state was reported while the connection was cut: %+v", state)
	}
	line.restore()
	soon := await.Poll{Interval: 20 * time.Millisecond, Timeout: 15 * time.Second}
	soon.Until(w, "the current states are reported", func(context.Context) (string, error) {
		all := w.states()
		yes, other := all["p yes"], all["p other"]
		if yes.State == failed && yes.Message == "at last" && other.State == succeeded && other.Message == "other" {
			return "", nil
		}
		return fmt.Sprintf("%+v", all), nil
	})
	w.eventually(func() (bool, string) {
		events := w.events()
		return len(events) == 3, "events: " + fmt.Sprint(events)
	})
}
