// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"sync"
	"sync/atomic"
)

// conn is a connection that can be reset.
type conn struct {
	net.Conn
	conns *conns
	// client is the name of the client, empty until the proxy knows it. conns.mu guards it.
	client string
	// running is the number of requests on the connection.
	running atomic.Int64
	// down is whether the connection was counted as down.
	down atomic.Bool
}

// Close closes the connection. The proxy forgets it.
func (c *conn) Close() error {
	c.conns.mu.Lock()
	delete(c.conns.open, c)
	c.conns.mu.Unlock()
	return c.Conn.Close() //nolint:wrapcheck // It wraps a connection.
}

// reset closes the connection at once: the peer gets "connection reset by peer".
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// conns are open connections. It is for concurrent use.
type conns struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

func (c *conns) add(nc net.Conn) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := &conn{Conn: nc, conns: c}
	c.open[out] = struct{}{}
	return out
}

// of returns the connections whose client's name matches.
func (c *conns) of(matches func(client string) bool) []*conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*conn
	for each := range c.open {
		if matches(each.client) {
			out = append(out, each)
		}
	}
	return out
}

// setClient stores the name of the connection's client.
func (c *conn) setClient(name string) {
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	c.client = name
}

// listener accepts connections that can be reset.
type listener struct {
	net.Listener
	// admit returns false for a connection that it has reset.
	admit func(*conn) bool
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // It wraps a listener.
		}
		if c := l.conns.add(accepted); l.admit(c) {
			return c, nil
		}
	}
}
