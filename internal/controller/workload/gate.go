// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/internal/controller"
)

// Gate stops the controller of a kind while another program serves the kind. It is safe for
// concurrent use. The zero value is closed.
type Gate struct {
	mu   sync.Mutex
	open bool
	// reopen enqueue all sets of the controllers.
	reopen []func()
}

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
		calls = g.reopen
	}
	g.open = open
	g.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// source returns a source that enqueues all sets when the gate opens.
func (g *Gate) source(all func(q controller.Queue)) source.Source {
	return source.Func(func(_ context.Context, q controller.Queue) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.reopen = append(g.reopen, func() { all(q) })
		return nil
	})
}
