// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/plan"
)

// reducedFor is how long the budget of a node's plan stays reduced after the API server refused a
// larger plan. The cause may be gone by then: for example, the report on the node was too large.
const reducedFor = 10 * time.Minute

// budgets holds the reduced budgets of nodes.
type budgets struct {
	mu      sync.Mutex
	reduced map[string]reduction
}

type reduction struct {
	maxBytes int
	until    time.Time
}

func newBudgets() *budgets {
	return &budgets{reduced: make(map[string]reduction)}
}

// of returns the budget of the node's plan, and for how long it stays reduced.
func (b *budgets) of(node string, now time.Time) (maxBytes int, reducedFor time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current, found := b.reduced[node]
	if wait := current.until.Sub(now); found && wait > 0 {
		return current.maxBytes, wait
	}
	delete(b.reduced, node)
	return plan.MaxBytes, 0
}

// reduce sets the budget of the node's plan for a while.
func (b *budgets) reduce(node string, maxBytes int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reduced[node] = reduction{maxBytes: maxBytes, until: now.Add(reducedFor)}
}

// forget removes a node.
func (b *budgets) forget(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reduced, node)
}
