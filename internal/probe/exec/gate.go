// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"sync"

	"github.com/seamark-dev/seamark/internal/probe"
)

// gate lets runs wait for a slot. It is safe for concurrent use.
type gate struct {
	mu      sync.Mutex
	slots   *slots
	waiting int
}

// acquire waits for a slot. The error is the cause of the end of ctx.
func (g *gate) acquire(ctx context.Context, owner probe.Owner) (*ticket, error) {
	t := &ticket{owner: owner, ready: make(chan struct{})}
	g.mu.Lock()
	g.slots.wait(t)
	g.waiting++
	g.admit()
	g.mu.Unlock()
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.ready:
		g.slots.release(t)
	default:
		g.slots.withdraw(t)
		g.waiting--
	}
	g.admit()
	return nil, context.Cause(ctx)
}

// release frees the slot of a run.
func (g *gate) release(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots.release(t)
	g.admit()
}

// admit starts all runs that may have a slot.
func (g *gate) admit() {
	for t := g.slots.next(); t != nil; t = g.slots.next() {
		g.waiting--
		close(t.ready)
	}
}

// queued returns how many runs wait.
func (g *gate) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}
