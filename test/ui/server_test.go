// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
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
	if err != nil {
		s.Fatal(err)
	}
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
