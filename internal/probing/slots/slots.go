// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slots bounds how many probes run at a time. Namespaces share the slots fairly, and the
// pods of a namespace share its part: see shares.
package slots

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
)

// Gate lets runs wait for a slot. It is safe for concurrent use.
type Gate struct {
	waited func(time.Duration)

	mu      sync.Mutex
	shares  *shares
	waiting int
}

// New returns a gate with a number of slots, at least one. Function waited receives the time that
// each run waited. It may be nil, and is called from many goroutines at once.
func New(total int, waited func(time.Duration)) *Gate {
	return &Gate{waited: waited, shares: newShares(max(total, 1))}
}

// Acquire waits for a slot. The caller calls release once, when the run has ended. The error is
// the cause of the end of ctx.
func (g *Gate) Acquire(ctx context.Context, owner probing.Owner) (release func(), err error) {
	start := time.Now()
	t, err := g.wait(ctx, owner)
	if g.waited != nil {
		g.waited(time.Since(start))
	}
	if err != nil {
		return nil, err
	}
	return func() { g.release(t) }, nil
}

// Queued returns how many runs wait for a slot.
func (g *Gate) Queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

func (g *Gate) wait(ctx context.Context, owner probing.Owner) (*ticket, error) {
	t := &ticket{owner: owner, ready: make(chan struct{})}
	g.mu.Lock()
	g.shares.wait(t)
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
		g.shares.release(t)
	default:
		g.shares.withdraw(t)
		g.waiting--
	}
	g.admit()
	return nil, context.Cause(ctx)
}

// release frees the slot of a run.
func (g *Gate) release(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shares.release(t)
	g.admit()
}

// admit starts all runs that may have a slot.
func (g *Gate) admit() {
	for t := g.shares.next(); t != nil; t = g.shares.next() {
		g.waiting--
		close(t.ready)
	}
}

// Limit returns a prober whose runs wait for a slot of the gate. The wait does not count against
// the timeout of a target.
func (g *Gate) Limit(prober probing.Prober) probing.Prober { return limited{g, prober} }

// limited is a prober with a gate.
type limited struct {
	gate   *Gate
	prober probing.Prober
}

// Probe waits for a slot and runs the probe.
func (l limited) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	release, err := l.gate.Acquire(ctx, target.Owner)
	if err != nil {
		return probing.Outcome{}, fmt.Errorf("wait to run %s probe: %w", target.Handler, err)
	}
	defer release()
	if target.Started != nil {
		target.Started()
	}
	return l.prober.Probe(ctx, target)
}
