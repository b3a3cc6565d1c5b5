// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/program/serving"
	"github.com/seamark-dev/seamark/test/expect"
)

// answersIn is a deadline for answers, which take much less.
const answersIn = 10 * time.Second

// serve serves until the test ends and returns the address.
func serve(t *testing.T, handler http.Handler, options serving.Options) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	serveAt(t, listener, handler, options)
	return listener.Addr().String()
}

// serveAt serves until the test ends.
func serveAt(t *testing.T, listener net.Listener, handler http.Handler, options serving.Options) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serving.Serve(ctx, listener, handler, options) }()
	t.Cleanup(func() {
		stop()
		expect.NoError(t, <-done)
		goleak.VerifyNone(t, goleak.IgnoreCurrent())
	})
}

// connect connects and sends the text.
func connect(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	expect.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(answersIn))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// answer returns the status of the next answer, or 0 if the server has closed the connection.
func answer(t *testing.T, conn net.Conn) int {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the connection is open and has no answer")
	}
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func ok() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
}

// TestIncompleteRequests checks that connections without a complete request keep nobody out: the oldest is closed.
func TestIncompleteRequests(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"part of the header": "GET / HTTP/1.1\r\nHost: a\r\n",
		"no end of a header": "GET / HTTP/1.1\r\nHost: " + strings.Repeat("a", 4<<10),
		"part of the body":   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
		"part of a chunk":    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, ok(), serving.Options{})
			first := connect(t, address, request)
			if got := answer(t, first); got != http.StatusOK {
				t.Fatalf("answer %d", got)
			}
			hostile := make([]net.Conn, 3*64)
			for i := range hostile {
				hostile[i] = connect(t, address, text)
			}
			if got := answer(t, connect(t, address, request)); got != http.StatusOK {
				t.Errorf("a new connection next to %d others has the answer %d", len(hostile), got)
			}
			if got := answer(t, hostile[0]); got == http.StatusOK {
				t.Errorf("the oldest incomplete request has the answer %d", got)
			}
			// The connection that was used before is idle, but there were always others that never were used.
			if _, err := io.WriteString(first, request); err != nil {
				t.Fatal(err)
			}
			expect.Equal(t, "a connection that is kept has the answer", http.StatusOK, answer(t, first))
		})
	}
}

// TestWaitingConnections checks that a request that has arrived is answered, however many connections wait to be
// accepted after it.
func TestWaitingConnections(t *testing.T) {
	// The goroutines of connections do not run while others are accepted, as on a machine that is busy.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	const waiting = 5
	var kubelets [waiting]net.Conn
	for i := range kubelets {
		for range 100 {
			connect(t, listener.Addr().String(), "")
		}
		kubelets[i] = connect(t, listener.Addr().String(), request)
	}
	for range 100 {
		connect(t, listener.Addr().String(), "")
	}
	serveAt(t, listener, ok(), serving.Options{})
	for i, kubelet := range kubelets {
		expect.Equal(t, fmt.Sprintf("request %d has the answer", i), http.StatusOK, answer(t, kubelet))
	}
}

// TestIdleConnectionsLeaveRoom checks that connections that were used and are idle do not take the places of those whose
// requests have not arrived yet.
func TestIdleConnectionsLeaveRoom(t *testing.T) {
	address := serve(t, ok(), serving.Options{})
	for range 64 {
		if got := answer(t, connect(t, address, request)); got != http.StatusOK {
			t.Fatalf("answer %d", got)
		}
	}
	kubelet := connect(t, address, "")
	for range 20 {
		connect(t, address, "")
	}
	// Connections are accepted in their order.
	if got := answer(t, connect(t, address, request)); got != http.StatusOK {
		t.Fatalf("answer %d", got)
	}
	if _, err := io.WriteString(kubelet, request); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "the connection that came before 21 others has the answer", http.StatusOK, answer(t, kubelet))
}

// TestLimits checks what the server refuses.
func TestLimits(t *testing.T) {
	address := serve(t, ok(), serving.Options{})
	large := serve(t, ok(), serving.Options{Header: 64 << 10})
	header := "GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("a", 16<<10) + "\r\n\r\n"
	for name, test := range map[string]struct {
		address, text string
		want          int
	}{
		"small request":         {address, request, http.StatusOK},
		"16 KiB of headers":     {address, header, http.StatusRequestHeaderFieldsTooLarge},
		"headers of the page":   {large, header, http.StatusOK},
		"headers without end":   {address, strings.TrimSuffix(header, "\r\n\r\n"), http.StatusRequestHeaderFieldsTooLarge},
		"body":                  {address, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na", http.StatusRequestEntityTooLarge},
		"body that never comes": {address, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "answer", test.want, answer(t, connect(t, test.address, test.text)))
		})
	}
}

// endless answers until the client is gone, which does not read.
func endless(started chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			return
		}
		started <- struct{}{}
		for text := make([]byte, 1<<20); ; {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	})
}

// TestUnreadAnswers checks that clients that do not read their answers keep nobody out, unless answers are streams.
func TestUnreadAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		options serving.Options
		want    int
	}{
		"answers": {serving.Options{Connections: 8}, http.StatusOK},
		"streams": {serving.Options{Connections: 8, Streams: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			started := make(chan struct{}, 8)
			address := serve(t, endless(started), test.options)
			for range 8 {
				connect(t, address, request)
				<-started
			}
			expect.Equal(t, "answer", test.want, answer(t, connect(t, address, "GET /short HTTP/1.1\r\nHost: a\r\n\r\n")))
		})
	}
}

// TestDrain checks that answers may end after the context has, for as long as the options say.
func TestDrain(t *testing.T) {
	for drain, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		t.Run(fmt.Sprint(drain), func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			expect.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			closing := make(chan struct{})
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				stop()
				<-closing
				// The server closes the connection before it ends if there is no time for answers.
				if drain == 0 {
					<-r.Context().Done()
				}
			})
			done := make(chan error, 1)
			go func() {
				done <- serving.Serve(ctx, listener, handler, serving.Options{Drain: drain, Closing: func() { close(closing) }})
			}()
			if got := answer(t, connect(t, listener.Addr().String(), request)); (got == http.StatusOK) != want {
				t.Errorf("answer %d", got)
			}
			expect.NoError(t, <-done)
		})
	}
}
