// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/loopback"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

// gate has what the user may read, which a test changes.
type gate struct {
	mu      sync.Mutex
	allowed web.Access
}

// access returns what the user may read.
func (g *gate) access() web.Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allowed
}

// set changes the answer.
func (g *gate) set(allowed web.Access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed = allowed
}

// site is a server of the page.
type site struct {
	*testing.T
	*gate
	source web.Source
	// session is what the page shows about the server.
	session model.Session
	// host is the address, which a restart keeps.
	host string
	stop func()
	// cut stops the server without a word to its clients.
	cut func()
}

// newSite serves the source to a user who may read everything.
func newSite(t *testing.T, source web.Source) *site {
	t.Helper()
	s := &site{T: t, source: source, gate: &gate{allowed: web.Access{User: "jane", Full: true}}, host: "127.0.0.1:0", stop: func() {},
		session: model.Session{Source: model.SourceCluster, Version: "v0.1.0"}}
	t.Cleanup(func() { s.stop() })
	s.start()
	return s
}

// start starts the server, at the same address as before.
func (s *site) start() {
	s.Helper()
	listener, err := new(net.ListenConfig).Listen(s.Context(), "tcp", s.host)
	expect.NoError(s, err)
	s.host = listener.Addr().String()
	handler := web.New(web.Options{Source: s.source, Access: s.access, Session: s.session})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	closed := func(err error) {
		if err := errors.Join(err, <-served); !errors.Is(err, http.ErrServerClosed) {
			s.Error(err)
		}
		s.stop, s.cut = func() {}, func() {}
	}
	s.stop = func() {
		handler.Close()
		closed(server.Shutdown(context.WithoutCancel(s.Context())))
	}
	s.cut = func() {
		closed(server.Close())
		handler.Close()
	}
}

// url returns the address of the page with a query.
func (s *site) url(query string) string { return "http://" + s.host + "/" + query }

// show serves the source and opens the page with a query.
func show(t *testing.T, source web.Source, query string) (*site, *tab) {
	t.Helper()
	s := newSite(t, source)
	p := newTab(t, s.host)
	p.open(s.url(query))
	return s, p
}

// command serves the sample as a command does, with a key in the URL.
func command(t *testing.T) *loopback.Server {
	t.Helper()
	all := func() web.Access { return web.Access{Full: true} }
	handler := web.New(web.Options{Source: sample(), Access: all, Session: model.Session{Source: model.SourceCluster}})
	server, err := loopback.Listen(t.Context(), "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, handler, handler.Close) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return server
}

// hostOf returns the host and the port of a URL.
func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	expect.NoError(t, err)
	return u.Host
}

// neighbor is another server of the computer. Each of its pages has a link to an address.
type neighbor struct {
	*httptest.Server
	mu       sync.Mutex
	received []string
}

func newNeighbor(t *testing.T, link string) *neighbor {
	t.Helper()
	n := &neighbor{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.received = append(n.received, fmt.Sprintf("%s %s %v", r.Method, r.URL, r.Header))
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><link rel="icon" href="data:,"><a href="`+html.EscapeString(link)+`">link</a>`)
	}))
	t.Cleanup(n.Close)
	return n
}

// TestSession checks that the printed URL opens the page once, from wherever it is followed, and that all tabs of the
// browser have the session, and nobody else.
func TestSession(t *testing.T) {
	server := command(t)
	printed := server.URL(url.Values{"namespace": {"shop"}})
	other := newNeighbor(t, printed)
	p := newTab(t, hostOf(t, printed))
	// For the browser, localhost is another site than 127.0.0.1.
	p.do(chromedp.Navigate(strings.Replace(other.URL, "127.0.0.1", "localhost", 1)))
	p.click("a")
	p.awaitLive()
	equal(p, shown, 17)
	equal(p, "location.search + location.hash", "?namespace=shop")
	equal(p, "document.cookie", "")
	p.do(chromedp.Reload())
	p.awaitLive()
	equal(p, shown, 17)

	base := "http://" + hostOf(t, printed) + "/"
	second := p.another()
	second.open(base + "?namespace=games")
	equal(second, shown, 24)
	second.open(printed)
	equal(second, shown, 17)

	// Another server receives nothing that is worth anything, and reads nothing.
	second.do(chromedp.Navigate(other.URL))
	for _, mode := range []string{"cors", "no-cors"} {
		value[chromedp.Void](second, fmt.Sprintf(`void fetch(%q, { mode: %q, credentials: 'include' }).then((r) => { got = r.type + r.status; }, () => { got = 'refused'; })`,
			base+"api/v1/session", mode))
		equal(second, "window.got", "refused")
		value[chromedp.Void](second, "void delete window.got")
	}
	second.do(chromedp.Navigate(other.URL))
	other.mu.Lock()
	for _, request := range other.received {
		if strings.Contains(request, "Cookie") || strings.Contains(request, "Seamark") || strings.Contains(request, "key=") {
			t.Errorf("another server received %s", request)
		}
	}
	other.mu.Unlock()
	p.forgive()
	second.forgive()

	browser := newTab(t, hostOf(t, printed))
	browser.do(chromedp.Navigate(printed))
	equal(browser, connection, "refused")
	equal(browser, notice, "The server refused access: this browser has no session: open the last URL that the command has printed.")
	equal(browser, "location.hash", "")
	browser.do(chromedp.Navigate(server.URL(url.Values{"namespace": {"shop"}})))
	browser.awaitLive()
	equal(browser, shown, 17)
}

// TestSessionReachesOtherTabs checks that a tab without a session continues when another tab gets one.
func TestSessionReachesOtherTabs(t *testing.T) {
	server := command(t)
	host := hostOf(t, server.URL(nil))
	p := newTab(t, host)
	p.do(chromedp.Navigate("http://" + host + "/"))
	equal(p, connection, "refused")
	p.another().open(server.URL(nil))
	p.awaitLive()
	equal(p, shown, 41)
}
