// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// errClosed means that the server stops.
var errClosed = errors.New("the server stops")

// hub has the groups of streams.
type hub struct {
	source Source
	limits Limits
	// ctx ends when the hub is closed.
	ctx    context.Context
	cancel context.CancelFunc
	// running are the goroutines of the groups.
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	groups map[Scope]*group
	users  map[string]int
	count  int
}

func newHub(source Source, limits Limits) *hub {
	h := &hub{source: source, limits: limits, groups: map[Scope]*group{}, users: map[string]int{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// close ends all groups and waits for their goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.running.Wait()
}

// reserve counts a stream of the user. The caller calls release when the stream ends.
func (h *hub) reserve(user string) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errClosed
	case h.count >= h.limits.Streams:
		return nil, &Refusal{http.StatusTooManyRequests, "too many pages are open: close some, or try again later"}
	case h.users[user] >= h.limits.UserStreams:
		return nil, &Refusal{http.StatusTooManyRequests, "you have too many pages open: close some"}
	}
	h.count++
	h.users[user]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.count--
		if h.users[user]--; h.users[user] == 0 {
			delete(h.users, user)
		}
	}, nil
}

// join adds a stream to the group of the scope, which it starts if there is none. The caller calls
// leave of the group.
func (h *hub) join(ctx context.Context, scope Scope) (*group, *queue, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, nil, errClosed
	}
	g := h.groups[scope]
	if g == nil {
		g = newGroup(h, scope)
		h.groups[scope] = g
		h.running.Go(g.run)
	}
	q := g.add()
	h.mu.Unlock()
	select {
	case <-g.opened:
		if g.openErr == nil {
			return g, q, nil
		}
		h.leave(g, q)
		return nil, nil, g.openErr
	case <-ctx.Done():
		h.leave(g, q)
		return nil, nil, context.Cause(ctx)
	}
}

// leave removes a stream from its group. A group without streams ends after a while.
func (h *hub) leave(g *group, q *queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.remove(q) == 0 {
		g.idle = time.AfterFunc(h.limits.Linger, func() { h.retire(g) })
	}
}

// retire ends the group if it still has no streams.
func (h *hub) retire(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.size() == 0 {
		h.forget(g)
		g.stop()
	}
}

// forget makes the next stream of the scope start a new group. The caller holds mu.
func (h *hub) forget(g *group) {
	if h.groups[g.scope] == g {
		delete(h.groups, g.scope)
	}
}

// end ends the streams of a group that can no longer follow its scope.
func (h *hub) end(g *group, err error) {
	h.mu.Lock()
	h.forget(g)
	h.mu.Unlock()
	if h.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		err = errClosed
	}
	g.fail(err)
}
