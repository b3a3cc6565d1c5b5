// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"runtime"
	"sync"
)

// connections is a listener with a limited number of connections. It always accepts: a connection that
// is one too many replaces another one, so that idle connections do not keep anybody out.
type connections struct {
	net.Listener
	limit int
	// streams is whether connections with complete requests are kept in any case.
	streams bool

	mu   sync.Mutex
	open map[*connection]struct{}
	// clock counts turns.
	clock uint64
}

func newConnections(listener net.Listener, limit int, streams bool) *connections {
	return &connections{Listener: listener, limit: limit, streams: streams, open: map[*connection]struct{}{}}
}

// connection is one of the connections.
type connection struct {
	net.Conn
	of *connections
	// used is whether there was a complete request, and answering is how many are being answered.
	used      bool
	answering int
	// turn is when the connection was accepted, or began or ended to answer.
	turn uint64
}

// Accept returns the next connection, and closes another one if there are too many.
func (c *connections) Accept() (net.Conn, error) {
	for {
		if c.full() {
			// The goroutines of accepted connections are then likely to read what has arrived, before those that wait to be
			// accepted replace them.
			runtime.Gosched()
		}
		accepted, err := c.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // the server asks whether it is temporary
		}
		added := &connection{Conn: accepted, of: c}
		victim := c.add(added)
		if victim != nil {
			_ = victim.Conn.Close()
		}
		if victim != added {
			return added, nil
		}
	}
}

// full reports whether a further connection replaces another one.
func (c *connections) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) >= c.limit
}

// add returns the connection that must be closed for the new one, which may be itself, or nil.
func (c *connections) add(added *connection) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	victim := (*connection)(nil)
	if len(c.open) >= c.limit {
		if victim = c.victim(); victim == nil {
			return added
		}
		delete(c.open, victim)
	}
	c.clock++
	added.turn = c.clock
	c.open[added] = struct{}{}
	return victim
}

// victim returns the connection that others need the least: the oldest that never had a complete request, else
// the one that is idle for the longest time, else the one that is answered for the longest time. If more than
// half are idle, one of them comes first: they must leave room for new connections until their requests arrive.
// It returns nil if all must be kept.
func (c *connections) victim() *connection {
	var first *connection
	idle := c.idle() > c.limit/2
	for each := range c.open {
		if each.answering > 0 && c.streams || idle && !each.isIdle() {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(each.need(), first.need()), cmp.Compare(each.turn, first.turn)) < 0 {
			first = each
		}
	}
	return first
}

// idle returns how many connections are idle.
func (c *connections) idle() int {
	n := 0
	for each := range c.open {
		if each.isIdle() {
			n++
		}
	}
	return n
}

// isIdle reports whether there was a complete request, and none is being answered.
func (c *connection) isIdle() bool { return c.used && c.answering == 0 }

func (c *connection) need() int {
	switch {
	case c.answering > 0:
		return 2
	case c.used:
		return 1
	default:
		return 0
	}
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // the server knows the connection
}

// CloseWrite ends what is sent, so that the client reads the last answer.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // as in Close
	}
	return nil
}

// count notes that a complete request is answered from now on, or no longer.
func (c *connection) count(change int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.used = true
	c.answering += change
	c.of.clock++
	c.turn = c.of.clock
}

// connectionKey is the key of a request's *connection in its context.
type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Complete notes that a request has been read completely. The caller calls done once it is answered.
func Complete(r *http.Request) (done func()) {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		// The request is not from Serve.
		return func() {}
	}
	conn.count(1)
	return func() { conn.count(-1) }
}
