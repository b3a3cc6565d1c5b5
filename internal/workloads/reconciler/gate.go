// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Gate stops the controller of a kind while another program serves the kind. It is safe for
// concurrent use. Use NewGate to create one.
type Gate struct {
	mu   sync.Mutex
	open bool
	// decided is closed when the gate is set first.
	decided chan struct{}
	// reopen enqueue all sets of the controllers.
	reopen []func()
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{decided: make(chan struct{})} }

// Open reports whether the controller may act.
func (g *Gate) Open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Set opens or closes the gate. All sets are enqueued when it opens.
func (g *Gate) Set(open bool) {
	g.mu.Lock()
	var calls []func()
	if open && !g.open {
		calls = slices.Clone(g.reopen)
	}
	g.open = open
	select {
	case <-g.decided:
	default:
		close(g.decided)
	}
	g.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// source returns a source that enqueues all sets when the gate opens again. It starts when the gate
// has been set, and the controller with it: otherwise it would reconcile each set twice at the start.
func (g *Gate) source(all func(q controller.Queue)) source.Source {
	return source.Func(func(ctx context.Context, q controller.Queue) error {
		select {
		case <-g.decided:
		case <-ctx.Done():
			return fmt.Errorf("wait for the first look at the lease of OpenKruise's manager: %w", ctx.Err())
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reopen = append(g.reopen, func() { all(q) })
		return nil
	})
}
