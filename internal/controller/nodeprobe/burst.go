// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"sync"
	"time"
)

// settle is how long a node's inputs must be unchanged before its plan is compiled, and the
// maximum time that the plan waits if they keep changing.
type settle struct {
	idle, limit time.Duration
}

// afterPod applies to changes of the node and its pods.
func afterPod() settle { return settle{idle: 100 * time.Millisecond, limit: time.Second} }

// afterMarker applies to changes of markers. It is longer, because markers are often applied
// one after the other, and each changes the plans of many nodes.
func afterMarker() settle {
	return settle{idle: 300 * time.Millisecond, limit: 1500 * time.Millisecond}
}

// burst is a series of changes to one node's inputs since its last compilation. Its settle
// times are the longest of these changes.
type burst struct {
	first, last time.Time
	settle      settle
}

// wait returns how long the compilation still has to wait at the time now; zero means that it
// is due.
func (b burst) wait(now time.Time) time.Duration {
	due := b.last.Add(b.settle.idle)
	if limit := b.first.Add(b.settle.limit); limit.Before(due) {
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

// touch records a change to the node's inputs.
func (b *bursts) touch(node string, now time.Time, settle settle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current, found := b.open[node]
	if !found {
		current.first = now
	}
	current.last = now
	current.settle.idle = max(current.settle.idle, settle.idle)
	current.settle.limit = max(current.settle.limit, settle.limit)
	b.open[node] = current
}

// take closes the node's burst if its compilation is due, and otherwise returns how long it
// has to wait. A node without a burst is due, because it was enqueued for another reason.
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
