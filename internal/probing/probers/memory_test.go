// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probers

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/internal/probing/slots"
)

// maxHeldBytes is what all network probes in flight may hold, as docs/security.md states. The
// memory of the test's servers is included.
const maxHeldBytes = 128 << 20

// TestHostileServersBoundMemory lets servers answer with what costs a client the most memory, and
// then stall. More probes are due than there are slots.
func TestHostileServersBoundMemory(t *testing.T) {
	all := attacks(t)
	before := heldBytes()
	for name, attack := range all {
		t.Run(name, func(t *testing.T) {
			w := newWire()
			address := probetest.Serve(t, func(conn net.Conn) {
				if w.serve(conn, attack.reply) {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
			target := attack.target(t, address)
			target.Timeout = time.Minute
			gate := slots.New(NetworkSlots, nil)
			set := newSet(w, nil, gate, "test")
			ctx, cancel := context.WithCancel(t.Context())
			var runs sync.WaitGroup
			const due = NetworkSlots * 5 / 4
			for i := range due {
				own := target
				own.Owner = probing.Owner{Namespace: fmt.Sprint(i), Pod: fmt.Sprint(i)}
				runs.Go(func() {
					outcome, _ := set.Probe(ctx, own)
					if ctx.Err() == nil {
						w.end(outcome)
					}
				})
			}
			w.settle(t, NetworkSlots, due)
			held := heldBytes() - before
			t.Logf("%d probes have ended, the others hold %d KiB", w.ended, held>>10)
			if held > maxHeldBytes {
				t.Errorf("the probes in flight hold %d MiB, want at most %d", held>>20, maxHeldBytes>>20)
			}
			if refused := w.ended == due; refused != attack.refused {
				t.Errorf("%d probes ended, the last one with %+v, want refused %t", w.ended, w.last, attack.refused)
			}
			cancel()
			runs.Wait()
		})
	}
}

// heldBytes returns the memory that is in use after a collection of garbage.
func heldBytes() int64 {
	runtime.GC()
	runtime.GC() // The second one frees what the first one finalized.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // far less than the maximum
}

// wire counts what servers have sent and clients have read, to know when a client has processed all
// that it got.
type wire struct {
	changed chan struct{}

	mu sync.Mutex
	// links are the connections by the address of the client.
	links map[string]*link
	// hung are the servers that have sent everything, and ended the probes with a result.
	hung, ended int
	last        probing.Outcome
}

// link is one connection. unread are the bytes that its client has not read.
type link struct {
	unread          int
	reading, closed bool
}

func newWire() *wire { return &wire{changed: make(chan struct{}, 1), links: map[string]*link{}} }

// on changes the connection of a client.
func (w *wire) on(client net.Addr, edit func(*link)) {
	w.change(func() {
		key := client.String()
		if w.links[key] == nil {
			w.links[key] = &link{}
		}
		edit(w.links[key])
	})
}

// quiet reports whether all clients have read everything, and wait for more.
func (w *wire) quiet() bool {
	for _, l := range w.links {
		if !l.closed && (l.unread != 0 || !l.reading) {
			return false
		}
	}
	return true
}

func (w *wire) change(edit func()) {
	w.mu.Lock()
	edit()
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *wire) end(outcome probing.Outcome) { w.change(func() { w.ended++; w.last = outcome }) }

// serve replies, and reports whether the connection stays open.
func (w *wire) serve(conn net.Conn, reply func(net.Conn) (stall bool)) bool {
	stall := reply(serverConn{conn, w})
	if stall {
		w.change(func() { w.hung++ })
	}
	return stall
}

// settle waits until the slots are taken by probes that hang, or all due probes have ended.
func (w *wire) settle(t *testing.T, slots, due int) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		w.mu.Lock()
		ended, hung := w.ended, w.hung
		// On a slow machine, a client may give up a handshake that hangs. Another probe then takes its slot.
		settled := ended == due || hung-ended == slots && w.quiet()
		w.mu.Unlock()
		if settled {
			return
		}
		select {
		case <-w.changed:
		case <-limit.C:
			t.Fatalf("%d probes hang and %d of %d have ended, want %d that hang, or all to end", hung, ended, due, slots)
		}
	}
}

// DialContext connects as probes do.
func (w *wire) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := probing.Dialer().DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return clientConn{conn, w}, nil
}

type serverConn struct {
	net.Conn
	wire *wire
}

func (c serverConn) Write(p []byte) (int, error) {
	c.wire.on(c.RemoteAddr(), func(l *link) { l.unread += len(p) })
	return c.Conn.Write(p)
}

type clientConn struct {
	net.Conn
	wire *wire
}

func (c clientConn) Read(p []byte) (int, error) {
	c.wire.on(c.LocalAddr(), func(l *link) { l.reading = true })
	n, err := c.Conn.Read(p)
	c.wire.on(c.LocalAddr(), func(l *link) { l.reading, l.unread = false, l.unread-n })
	return n, err
}

func (c clientConn) Close() error {
	c.wire.on(c.LocalAddr(), func(l *link) { l.closed = true })
	return c.Conn.Close()
}
