// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/probing"
	httpprobe "github.com/seamark-dev/seamark/internal/probing/http"
	"github.com/seamark-dev/seamark/internal/probing/probetest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is ample for servers that respond.
const timeout = 10 * time.Second

func target(t *testing.T, address string, timeout time.Duration) probing.Target {
	t.Helper()
	parsed, err := url.Parse(address)
	expect.NoErrorf(t, err, "parse %q", address)
	return probing.Target{Handler: probing.HandlerHTTP, Timeout: timeout, HTTP: &probing.HTTP{URL: parsed, Header: http.Header{}, PublishBody: true}}
}

func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.URL
}

func TestProbeEvaluatesResponse(t *testing.T) {
	elsewhere := "http://localhost:1/elsewhere"
	mux := http.NewServeMux()
	respond := func(path string, status int, header http.Header, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
	}
	to := func(location string) http.Header { return http.Header{"Location": {location}} }
	respond("/200", 200, nil, "idle\n")
	respond("/201", 201, nil, "")
	respond("/304", 304, nil, "")
	respond("/399", 399, nil, "odd")
	respond("/400", 400, nil, "secret")
	respond("/500", 500, nil, "secret")
	respond("/redirect", 302, to("/200"), "moved")
	respond("/redirect-to-failure", 301, to("/500"), "")
	respond("/redirect-elsewhere", 307, to(elsewhere), "moved")
	respond("/redirect-nowhere", 302, nil, "lost")
	respond("/loop", 302, to("/loop"), "")
	respond("/binary", 200, nil, "a\xff\xfeb")
	base := serve(t, mux.ServeHTTP)
	mux.HandleFunc("/redirect-to-port", http.RedirectHandler(serve(t, mux.ServeHTTP)+"/200", http.StatusFound).ServeHTTP)

	cases := map[string]probing.Outcome{
		"/200":                 {Success: true, Message: "idle"},
		"/201":                 {Success: true},
		"/304":                 {Success: true, Message: "Probe terminated redirects, Response body:"},
		"/399":                 {Success: true, Message: "Probe terminated redirects, Response body: odd"},
		"/400":                 {Message: "HTTP probe failed with statuscode: 400"},
		"/500":                 {Message: "HTTP probe failed with statuscode: 500"},
		"/404":                 {Message: "HTTP probe failed with statuscode: 404"},
		"/redirect":            {Success: true, Message: "idle"},
		"/redirect-to-port":    {Success: true, Message: "idle"},
		"/redirect-to-failure": {Message: "HTTP probe failed with statuscode: 500"},
		"/redirect-elsewhere":  {Success: true, Message: "Probe terminated redirects, Response body: moved"},
		"/redirect-nowhere":    {Success: true, Message: "Probe terminated redirects, Response body: lost"},
		"/loop":                {Message: `Get "/loop": stopped after 10 redirects`},
		"/binary":              {Success: true, Message: "a\ufffd\ufffdb"},
	}
	for path, want := range cases {
		t.Run(path[1:], func(t *testing.T) {
			got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, base+path, timeout))
			expect.NoError(t, err)
			expect.Equal(t, "Probe()", want, got)
		})
	}
}

// TestUnpublishedBody checks that no message contains a body that is not published.
func TestUnpublishedBody(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "secret")
	})
	cases := map[int]probing.Outcome{
		200: {Success: true, Message: "HTTP probe succeeded with statuscode: 200"},
		299: {Success: true, Message: "HTTP probe succeeded with statuscode: 299"},
		302: {Success: true, Message: "HTTP probe terminated redirects with statuscode: 302"},
		400: {Message: "HTTP probe failed with statuscode: 400"},
		500: {Message: "HTTP probe failed with statuscode: 500"},
	}
	for status, want := range cases {
		to := target(t, fmt.Sprint(base, "/", status), timeout)
		to.HTTP.PublishBody = false
		got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), to)
		expect.NoError(t, err)
		expect.Equal(t, fmt.Sprintf("status %d: Probe()", status), want, got)
	}
}

func TestProbeSendsHeader(t *testing.T) {
	cases := map[string]struct {
		header http.Header
		host   string
		want   http.Header
	}{
		"defaults": {
			want: http.Header{"User-Agent": {"kube-probe/1.36"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
		"own values": {
			header: http.Header{"User-Agent": {"me"}, "Accept": {"text/plain"}, "X-Game": {"a", "b"}},
			want: http.Header{
				"User-Agent": {"me"}, "Accept": {"text/plain"}, "X-Game": {"a", "b"}, "Connection": {"close"},
			},
		},
		"empty values": {
			header: http.Header{"User-Agent": {""}, "Accept": {""}},
			want:   http.Header{"Connection": {"close"}},
		},
		"own host": {
			host: "game.example.com",
			want: http.Header{"User-Agent": {"kube-probe/1.36"}, "Accept": {"*/*"}, "Connection": {"close"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := make(chan *http.Request, 1)
			target := target(t, serve(t, func(_ http.ResponseWriter, r *http.Request) { requests <- r })+"/idle?full=1", timeout)
			target.HTTP.Header, target.HTTP.Host = tc.header, tc.host
			before := tc.header.Clone()
			if got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target); err != nil || !got.Success {
				t.Fatalf("Probe() = %+v, %v, want success", got, err)
			}
			request := <-requests
			expect.Equal(t, "header", tc.want, request.Header)
			host := tc.host
			if host == "" {
				host = target.HTTP.URL.Host
			}
			if request.Host != host || request.RequestURI != "/idle?full=1" || request.Method != http.MethodGet {
				t.Errorf("request %s %s to %s, want GET /idle?full=1 to %s", request.Method, request.RequestURI, request.Host, host)
			}
			expect.Equal(t, "target changed", before, tc.header)
		})
	}
}

func TestProbeOfRawServer(t *testing.T) {
	hang := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	// reply reads the request first, so that closing the connection sends no reset.
	reply := func(text string, after func(net.Conn)) string {
		return probetest.Serve(t, func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, text)
			after(conn)
		})
	}
	done := func(net.Conn) {}
	cases := map[string]struct {
		address string
		timeout time.Duration
		want    bool
		unknown bool
		text    string
	}{
		"HTTP/1.0":           {address: reply("HTTP/1.0 200 OK\r\n\r\nold", done), timeout: timeout, want: true, text: "old"},
		"refused":            {address: probetest.Refusing(t), timeout: timeout, text: "connection refused"},
		"no TCP response":    {address: probetest.Unresponsive(t), timeout: 50 * time.Millisecond, text: "Client.Timeout exceeded"},
		"no HTTP response":   {address: probetest.Serve(t, hang), timeout: 50 * time.Millisecond, text: "Client.Timeout exceeded"},
		"closed immediately": {address: reply("", done), timeout: timeout, text: "EOF"},
		"closed in header":   {address: reply("HTTP/1.1 200 OK\r\nServer: x\r\n", done), timeout: timeout, text: "EOF"},
		"not HTTP":           {address: reply("SSH-2.0-OpenSSH\r\n", done), timeout: timeout, text: "malformed HTTP"},
		"closed in body": {
			address: reply("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nidle", done), timeout: timeout, unknown: true, text: "unexpected EOF",
		},
		"incomplete body": {
			address: reply("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nidle", hang), timeout: 50 * time.Millisecond, unknown: true, text: "Client.Timeout",
		},
		"long body": {
			address: reply(
				"HTTP/1.0 200 OK\r\n\r\n"+strings.Repeat("x", 20<<10), done,
			), timeout: timeout, want: true, text: strings.Repeat("x", probing.MaxMessageBytes),
		},
		"status without reason": {address: reply("HTTP/1.1 204\r\n\r\n", done), timeout: timeout, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, "http://"+tc.address+"/", tc.timeout))
			if tc.unknown {
				if err == nil || !strings.Contains(err.Error(), tc.text) || probing.TimedOut(err) != (tc.timeout < timeout) {
					t.Fatalf("Probe() = %+v, %v, want an error that contains %q", got, err, tc.text)
				}
				return
			}
			expect.NoError(t, err)
			if got.Success != tc.want || !strings.Contains(got.Message, tc.text) {
				t.Errorf("Probe() = %+v, want success %t and a message with %q", got, tc.want, tc.text)
			}
			expect.Equal(t, "TimedOut", tc.timeout < timeout, got.TimedOut)
		})
	}
}

func TestProbeLimitsBody(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, address, timeout))
	expect.NoError(t, err)
	expect.Equal(t, "Probe()", probing.Outcome{Success: true, Message: strings.Repeat("x", 1023)}, got)
}

func TestProbeOverTLS(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.Proto)
			}))
			server.EnableHTTP2 = http2
			server.StartTLS()
			t.Cleanup(server.Close)
			got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, server.URL, timeout))
			expect.NoError(t, err)
			expect.Equal(t, "Probe()", probing.Outcome{Success: true, Message: name}, got)
		})
	}
}

func TestProbeWithHTTP2OverCleartext(t *testing.T) {
	var both, only http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	only.SetUnencryptedHTTP2(true)
	for name, test := range map[string]struct {
		server http.Protocols
		http2  bool
		want   probing.Outcome
	}{
		"server of both, HTTP/2":        {server: both, http2: true, want: probing.Outcome{Success: true, Message: "HTTP/2.0"}},
		"server of both, HTTP/1.1":      {server: both, want: probing.Outcome{Success: true, Message: "HTTP/1.1"}},
		"server of HTTP/2 only, HTTP/2": {server: only, http2: true, want: probing.Outcome{Success: true, Message: "HTTP/2.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.Proto)
			}))
			server.Config.Protocols = &test.server
			server.Start()
			t.Cleanup(server.Close)
			to := target(t, server.URL, timeout)
			to.HTTP.HTTP2 = test.http2
			got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), to)
			if err != nil || got != test.want {
				t.Errorf("Probe() = %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// The rest of the error depends on whether the answer to the preface arrives before the request is sent.
func TestProbeFailsForHTTP2OnHTTP1Server(t *testing.T) {
	to := target(t, serve(t, func(http.ResponseWriter, *http.Request) {}), timeout)
	to.HTTP.HTTP2 = true
	if got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), to); err != nil || got.Success || !strings.Contains(got.Message, ": http2: ") {
		t.Errorf("Probe() = %+v, %v, want a failure that names the protocol", got, err)
	}
}

func TestProbeFailsForHTTPSOnHTTPServer(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, strings.Replace(plain, "http:", "https:", 1), timeout))
	if err != nil || got.Success || !strings.Contains(got.Message, "HTTP response to HTTPS client") {
		t.Errorf("Probe() = %+v, %v, want a failure that names the scheme", got, err)
	}
}

func TestProbeClosesConnection(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			const rounds = 3
			var opened atomic.Int32
			closed := make(chan struct{}, rounds)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.EnableHTTP2 = http2
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					opened.Add(1)
				case http.StateClosed:
					closed <- struct{}{}
				}
			}
			server.StartTLS()
			t.Cleanup(server.Close)
			prober, target := httpprobe.New(probing.Dialer(), "1.36"), target(t, server.URL, timeout)
			for range rounds {
				if got, err := prober.Probe(t.Context(), target); err != nil || !got.Success {
					t.Fatalf("Probe() = %+v, %v, want success", got, err)
				}
				<-closed
			}
			expect.Equal(t, "connections", rounds, opened.Load())
		})
	}
}

func TestProbeOnIPv6(t *testing.T) {
	listener := probetest.IPv6(t)
	if listener == nil {
		return
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(t.Context(), target(t, "http://"+listener.Addr().String(), timeout))
	if want := (probing.Outcome{Success: true, Message: listener.Addr().String()}); err != nil || got != want {
		t.Errorf("Probe() = %+v, %v, want %+v", got, err, want)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	stopping := errors.New("agent stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(stopping)
		<-r.Context().Done()
	})
	if got, err := httpprobe.New(probing.Dialer(), "1.36").Probe(ctx, target(t, address, time.Minute)); !errors.Is(err, stopping) {
		t.Errorf("Probe() = %+v, %v, want error %v", got, err, stopping)
	}
}
