// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package remote_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// forwarding is what a fake API server does with one connection.
type forwarding func(data, problems httpstream.Stream, session httpstream.Connection)

// forwards serves port-forwards with SPDY only.
func forwards(connected forwarding) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set(httpstream.HeaderProtocolVersion, "portforward.k8s.io")
		streams := make(chan httpstream.Stream, 8)
		session := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		if session == nil {
			return
		}
		defer session.Close()
		pairs := map[string]httpstream.Stream{}
		for {
			select {
			case <-session.CloseChan():
				return
			case stream := <-streams:
				id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
				if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					pairs[id] = stream
					continue
				}
				go connected(stream, pairs[id], session)
			}
		}
	}
}

// answer reads a request and writes the answer.
func answer(text string) forwarding {
	return func(data, problems httpstream.Stream, _ httpstream.Connection) {
		_, _ = http.ReadRequest(bufio.NewReader(data))
		_, _ = io.WriteString(data, text)
		_, _ = data.Close(), problems.Close()
	}
}

func refuse(data, problems httpstream.Stream, _ httpstream.Connection) {
	_, _ = io.WriteString(problems, `error forwarding port 80 to pod 3a7f, uid : in "/netns": dial tcp4 127.0.0.1:80: connect: connection refused`)
	_, _ = problems.Close(), data.Close()
}

func stall(data, _ httpstream.Stream, _ httpstream.Connection) { _, _ = io.Copy(io.Discard, data) }

func cutOff(_, _ httpstream.Stream, session httpstream.Connection) { _ = session.Close() }

// accept ends the connection after the client has ended its side.
func accept(data, problems httpstream.Stream, _ httpstream.Connection) {
	_, _ = io.Copy(io.Discard, data)
	_, _ = problems.Close(), data.Close()
}

// speak answers a request in another protocol.
func speak(data, problems httpstream.Stream, session httpstream.Connection) {
	_, _ = http.ReadRequest(bufio.NewReader(data))
	greet(data, problems, session)
}

// greet sends data and keeps the connection.
func greet(data, _ httpstream.Stream, _ httpstream.Connection) {
	_, _ = io.WriteString(data, "hello\r\n\r\n")
	_, _ = io.Copy(io.Discard, data)
}

// lingering ends the connection only after the client has ended its side, as container runtimes do.
func lingering(data, problems httpstream.Stream, _ httpstream.Connection) {
	request := bufio.NewReader(data)
	_, _ = http.ReadRequest(request)
	_, _ = io.WriteString(data, "HTTP/1.0 200 OK\r\n\r\nhi")
	_, _ = io.Copy(io.Discard, request)
	_, _ = data.Close(), problems.Close()
}

func httpTarget(timeout time.Duration) probing.Target {
	to := &url.URL{Scheme: "http", Host: "10.0.0.1:80", Path: "/ok"}
	return probing.Target{Handler: probing.HandlerHTTP, Timeout: timeout, HTTP: &probing.HTTP{URL: to, PublishBody: true}}
}

func tcpTarget() probing.Target {
	return probing.Target{Handler: probing.HandlerTCP, Timeout: ample, TCP: &probing.TCP{Address: "10.0.0.1:80"}}
}

func grpcTarget() probing.Target {
	return probing.Target{Handler: probing.HandlerGRPC, Timeout: 200 * time.Millisecond, GRPC: &probing.GRPC{Address: "10.0.0.1:80"}}
}

func TestForward(t *testing.T) {
	const short = 200 * time.Millisecond
	for name, test := range map[string]struct {
		connected forwarding
		target    probing.Target
		success   bool
		timedOut  bool
		says      string
		err       string
	}{
		"HTTP": {
			connected: answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), target: httpTarget(ample), success: true, says: "hi",
		},
		"HTTP, body ends with the connection": {connected: lingering, target: httpTarget(ample), success: true, says: "hi"},
		"HTTP status": {
			connected: answer("HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n"), target: httpTarget(ample), says: "statuscode: 500",
		},
		"HTTP refused": {
			connected: refuse, target: httpTarget(ample), says: `Get "http://10.0.0.1:80/ok": dial tcp4 127.0.0.1:80: connect: connection refused`,
		},
		"HTTP, no answer": {connected: stall, target: httpTarget(short), timedOut: true, says: "Client.Timeout exceeded"},
		"HTTP, half an answer": {
			connected: answer("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"), target: httpTarget(ample), err: "unexpected EOF",
		},
		"HTTP, session lost":            {connected: cutOff, target: httpTarget(ample), err: "the session was lost"},
		"HTTP, other protocol":          {connected: speak, target: httpTarget(ample), says: "malformed HTTP"},
		"TCP":                           {connected: accept, target: tcpTarget(), success: true},
		"TCP, server that speaks first": {connected: greet, target: tcpTarget(), success: true},
		"TCP refused":                   {connected: refuse, target: tcpTarget(), says: "dial tcp4 127.0.0.1:80: connect: connection refused"},
		"TCP, session lost":             {connected: cutOff, target: tcpTarget(), err: "the session was lost"},
		"gRPC refused": {
			connected: refuse, target: grpcTarget(), timedOut: true, says: "within 200ms: dial tcp4 127.0.0.1:80: connect: connection refused",
		},
		"gRPC, no answer": {connected: stall, target: grpcTarget(), timedOut: true, says: "does not respond as a gRPC server"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := probe(t, t.Context(), forwards(test.connected), test.target)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("Probe() = %+v, %v, want error %q", got, err, test.err)
				}
				return
			}
			if err != nil || got.Success != test.success || got.TimedOut != test.timedOut || !strings.Contains(got.Message, test.says) {
				t.Errorf("Probe() = %+v, %v, want success %t, timeout %t, message %q", got, err, test.success, test.timedOut, test.says)
			}
		})
	}
}

func TestForwardDenied(t *testing.T) {
	_, err := probe(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, denied)
	}, tcpTarget())
	var missing *remote.DeniedError
	if !errors.As(err, &missing) || missing.Missing.Resource != permission.PortForward || missing.Missing.Namespace != "games" {
		t.Errorf("error %v, want a missing permission to create pods/portforward in games", err)
	}
}

func TestForwardEndsWithItsContext(t *testing.T) {
	stop := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	got, err := probe(t, ctx, forwards(func(data, problems httpstream.Stream, session httpstream.Connection) {
		cancel(stop)
		stall(data, problems, session)
	}), httpTarget(ample))
	if !errors.Is(err, stop) {
		t.Errorf("Probe() = %+v, %v, want error %v", got, err, stop)
	}
}
