// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"sync"
	"time"
)

const (
	// quiet is how long a node's inputs must rest before its plan is compiled.
	quiet = 100 * time.Millisecond
	// patience is how long a plan waits at most, however restless its inputs.
	patience = time.Second
)

// burst is a run of changes to one node's inputs that no compile has seen yet.
type burst struct {
	first, last time.Time
}

// wait returns how long the compile still waits at the time now; zero means that it is due.
func (b burst) wait(now time.Time) time.Duration {
	due := b.last.Add(quiet)
	if limit := b.first.Add(patience); limit.Before(due) {
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
func (b *bursts) touch(node string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current, found := b.open[node]
	if !found {
		current.first = now
	}
	current.last = now
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
