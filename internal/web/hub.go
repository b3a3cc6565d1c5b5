// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// errClosed means that the server stops.
var errClosed = &Refusal{http.StatusServiceUnavailable, "the server stops"}

// hub has the groups of streams.
type hub struct {
	source Source
	limits Limits
	// ctx ends when the hub is closed.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	groups map[Scope]*group
	count  int
}

func newHub(source Source, limits Limits) *hub {
	h := &hub{source: source, limits: limits, groups: map[Scope]*group{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// close ends all groups and waits for their goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.cancel()
	h.mu.Unlock()
	h.running.Wait()
}

// join counts a stream, and returns the group of its scope, which it starts if there is none. The caller
// calls leave when the stream ends.
func (h *hub) join(scope Scope) (g *group, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ctx.Err() != nil:
		return nil, nil, errClosed
	case h.count >= h.limits.Streams:
		return nil, nil, &Refusal{http.StatusTooManyRequests, "too many pages are open: close some"}
	}
	if g = h.groups[scope]; g == nil {
		g = newGroup(h.ctx, scope)
		h.groups[scope] = g
		h.running.Go(func() { h.run(g) })
	}
	if g.idle != nil {
		g.idle.Stop()
	}
	h.count++
	g.streams++
	return g, func() { h.leave(g) }, nil
}

// leave removes a stream. A group without streams ends after a while.
func (h *hub) leave(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count--
	if g.streams--; g.streams == 0 {
		g.idle = time.AfterFunc(h.limits.Linger, func() { h.retire(g) })
	}
}

// retire ends the group if it still has no streams.
func (h *hub) retire(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.streams == 0 {
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

// run follows the scope of the group until it is stopped or the source fails, and ends its streams.
func (h *hub) run(g *group) {
	defer g.stop()
	err := g.follow(h.source, h.limits.Interval)
	h.mu.Lock()
	h.forget(g)
	h.mu.Unlock()
	if h.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		err = errClosed
	}
	g.fail(err)
}
