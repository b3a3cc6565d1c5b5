// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// paths of requests.
const (
	pods   = "/api/v1/namespaces/games/pods"
	leases = "/apis/coordination.k8s.io/v1/namespaces/games/leases"
)

// server is a server of HTTP/2 and HTTP/1.1 in the place of an API server, with a proxy before it.
type server struct {
	*testing.T
	proxy *Proxy
	// writes is the number of writes that took effect.
	writes atomic.Int64
	// events are sent to the watch that runs, and each is seen by one watch.
	events chan string

	mu   sync.Mutex
	last *http.Request
}

func newServer(t *testing.T, options Options) *server {
	t.Helper()
	s := &server{T: t, events: make(chan string)}
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	options.Upstream = &rest.Config{Host: upstream.URL, BearerToken: "of the proxy", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	p, err := New(options)
	expect.NoError(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	s.proxy = p
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.last = r
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodGet {
		s.writes.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, "%s", body)
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event, ok := <-s.events:
			if !ok {
				return
			}
			fmt.Fprintln(w, event)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// request returns the last request that arrived at the server.
func (s *server) request() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// set sets faults.
func (s *server) set(faults ...Fault) {
	s.Helper()
	expect.NoError(s, s.proxy.Set(faults...))
}

// injected checks the counts of the proxy.
func (s *server) injected(want string) {
	s.Helper()
	expect.Equal(s, "injected", want, strings.TrimPrefix(fmt.Sprint(s.proxy.Counts()), "map"))
}

// protocols are what the two versions are called in TLS.
var protocols = map[string]string{"HTTP/1.1": "http/1.1", "HTTP/2.0": "h2"}

// client is a client of a proxy.
type client struct {
	*server
	http *http.Client
	host string
}

// client returns a client with the name, which uses the version of HTTP.
func (s *server) client(name, version string) *client {
	s.Helper()
	config, err := s.proxy.Config(name)
	expect.NoError(s, err)
	config.BearerToken, config.NextProtos, config.UserAgent = name+"'s token", []string{protocols[version]}, name+"/v1"
	out, err := rest.HTTPClientFor(config)
	expect.NoError(s, err)
	s.Cleanup(out.CloseIdleConnections)
	return &client{server: s, http: out, host: config.Host}
}

// do sends a request. The caller closes the body.
func (c *client) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	c.Helper()
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, strings.NewReader(body))
	expect.NoError(c, err)
	return c.http.Do(request)
}

// text sends a request and returns the status and the body, or an error.
func (c *client) text(method, path, body string) (string, error) {
	c.Helper()
	response, err := c.do(c.Context(), method, path, body)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, text), err
}

// is checks the answer to a request.
func (c *client) is(method, path, body, want string) {
	c.Helper()
	if got, err := c.text(method, path, body); err != nil || got != want {
		c.Errorf("%s %s: got %q, %v; want %q", method, path, got, err, want)
	}
}

// watcher is a watch that runs.
type watcher struct {
	*client
	lines *bufio.Reader
	body  io.Closer
}

// watch starts a watch, which ends with the test.
func (c *client) watch(query string) *watcher {
	c.Helper()
	response, err := c.do(c.Context(), http.MethodGet, pods+"?watch=true"+query, "")
	expect.NoError(c, err)
	c.Cleanup(func() { _ = response.Body.Close() })
	return &watcher{client: c, lines: bufio.NewReader(response.Body), body: response.Body}
}

// reads checks the next line of the watch, and how it ends if err is not nil.
func (w *watcher) reads(want string, ends func(error) bool) {
	w.Helper()
	got, err := w.lines.ReadString('\n')
	if got != want || (err != nil) != (ends != nil) || ends != nil && !ends(err) {
		w.Errorf("got %q and the error %v; want %q", got, err, want)
	}
}
