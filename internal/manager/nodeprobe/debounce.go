// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"time"
)

// debounce is how long a node's inputs must be unchanged before its plan is compiled, and the
// maximum time that the plan waits if they keep changing.
type debounce struct {
	idle, limit time.Duration
}

// afterPod applies to changes of the node and its pods.
func afterPod() debounce { return debounce{idle: 100 * time.Millisecond, limit: time.Second} }

// afterMarker applies to changes of markers. It is longer, because markers are often applied
// one after the other, and each changes the plans of many nodes.
func afterMarker() debounce {
	return debounce{idle: 300 * time.Millisecond, limit: 1500 * time.Millisecond}
}

// burst is a series of changes to one node's inputs since its last compilation. Its debounce
// times are the longest of these changes. The zero value has no change and is due.
type burst struct {
	first, last time.Time
	debounce    debounce
}

// wait returns how long the compilation still has to wait at the time now; zero means that it
// is due.
func (b burst) wait(now time.Time) time.Duration {
	due := b.last.Add(b.debounce.idle)
	if limit := b.first.Add(b.debounce.limit); limit.Before(due) {
		due = limit
	}
	return max(0, due.Sub(now))
}

// touch adds a change to the burst.
func (b *burst) touch(now time.Time, debounce debounce) {
	if b.first.IsZero() {
		b.first = now
	}
	b.last = now
	b.debounce.idle = max(b.debounce.idle, debounce.idle)
	b.debounce.limit = max(b.debounce.limit, debounce.limit)
}
