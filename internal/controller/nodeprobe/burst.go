// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"sync"
	"time"
)

// rest is how long a node's inputs must be quiet before its plan is compiled, and how
// long the plan waits at most, however restless they are.
type rest struct {
	quiet, patience time.Duration
}

// podRest follows a change of the node's pods.
func podRest() rest { return rest{quiet: 100 * time.Millisecond, patience: time.Second} }

// markerRest follows a change of a marker. It is longer: markers tend to come several
// in a row, one request after another, and each changes the plans of many nodes.
func markerRest() rest { return rest{quiet: 300 * time.Millisecond, patience: 1500 * time.Millisecond} }

// burst is a run of changes to one node's inputs that no compile has seen yet. Its rest
// is the longest that one of them asks for.
type burst struct {
	first, last time.Time
	rest        rest
}

// wait returns how long the compile still waits at the time now; zero means that it is due.
func (b burst) wait(now time.Time) time.Duration {
	due := b.last.Add(b.rest.quiet)
	if limit := b.first.Add(b.rest.patience); limit.Before(due) {
		due = limit
	}
	return max(0, due.Sub(now))
}

// bursts holds the open burst of each node.
type bursts struct {
	mu   sync.Mutex
	open map[string]burst
}

func newBursts() *bursts {
	return &bursts{open: make(map[string]burst)}
}

// touch notes a change to the node's inputs.
func (b *bursts) touch(node string, now time.Time, needs rest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current, found := b.open[node]
	if !found {
		current.first = now
	}
	current.last = now
	current.rest.quiet = max(current.rest.quiet, needs.quiet)
	current.rest.patience = max(current.rest.patience, needs.patience)
	b.open[node] = current
}

// take closes the node's burst if its compile is due, and returns how long it waits
// otherwise. A node without a burst is due: something else asks for it.
func (b *bursts) take(node string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if current, found := b.open[node]; found {
		if wait := current.wait(now); wait > 0 {
			return wait
		}
		delete(b.open, node)
	}
	return 0
}
