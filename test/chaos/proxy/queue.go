// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// event is an event of a watch.
type event struct {
	at   time.Time
	text []byte
}

// queue has the events of a watch between the API server and the client, at most limit bytes and one
// event. One goroutine adds events and another takes them.
type queue struct {
	limit int
	// changed has a value after a change by the goroutine that adds, and room by the one that takes.
	changed, room chan struct{}
	closed        chan struct{}

	mu     sync.Mutex
	events []event
	size   int
	err    error
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, changed: make(chan struct{}, 1), room: make(chan struct{}, 1), closed: make(chan struct{})}
}

// add adds an event when there is room. It returns false if the queue is closed.
func (q *queue) add(text []byte) bool {
	at := time.Now()
	for q.look().full {
		select {
		case <-q.room:
		case <-q.closed:
			return false
		}
	}
	q.mu.Lock()
	q.events = append(q.events, event{at: at, text: text})
	q.size += len(text)
	q.mu.Unlock()
	wake(q.changed)
	return true
}

// end says that no event follows, and why.
func (q *queue) end(err error) {
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	wake(q.changed)
}

// take removes the first event.
func (q *queue) take() {
	q.mu.Lock()
	q.size -= len(q.events[0].text)
	q.events[0] = event{}
	q.events = q.events[1:]
	q.mu.Unlock()
	wake(q.room)
}

// view is what a queue contains.
type view struct {
	// head is the first event, with an empty text if there is none.
	head event
	full bool
	// err is why no event follows those in the queue, and nil if some may.
	err error
}

func (q *queue) look() view {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := view{full: q.size >= q.limit, err: q.err}
	if len(q.events) > 0 {
		v.head = q.events[0]
	}
	return v
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

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
