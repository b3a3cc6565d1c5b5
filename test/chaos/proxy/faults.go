// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// Count says how often a fault was injected.
type Count struct {
	// Hits is the number of requests that the fault hit, each counted once: delayed, refused, answered
	// with 410, lost, or whose watch was cut, ended, expired or had an event delayed. A request that
	// matches a fault but that the fault does not hit, such as a watch without events, is not counted.
	// Down counts connections if it concerns whole connections.
	Hits int
	// Interrupted is the number of other requests that were running on connections that the fault
	// reset.
	Interrupted int
}

// faults are the faults that are set, and how often they were injected. It is for concurrent use.
type faults struct {
	seed  uint64
	state atomic.Pointer[state]

	mu     sync.Mutex
	sets   uint64
	counts map[Kind]Count
}

// state is a set of faults. Only the counters in it change.
type state struct {
	faults []*active
	// replaced is closed when other faults are set.
	replaced chan struct{}
}

func newFaults(seed uint64) *faults {
	f := &faults{seed: seed, counts: map[Kind]Count{}}
	f.state.Store(&state{replaced: make(chan struct{})})
	return f
}

// set replaces the faults. Each gets a seed of its own.
func (f *faults) set(list []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := &state{replaced: make(chan struct{})}
	for _, fault := range list {
		f.sets++
		next.faults = append(next.faults, &active{Fault: fault, seed: f.seed + f.sets<<32, since: time.Now()})
	}
	close(f.state.Swap(next).replaced)
}

// downs reports whether all connections of the client are down.
func (f *faults) downs(client string) bool {
	for _, fault := range f.state.Load().faults {
		if fault.Kind == Down && fault.Match.ofConnections() && fault.Match.matches(request{client: client}) {
			return true
		}
	}
	return false
}

// count adds a hit of the kind, which interrupted other requests.
func (f *faults) count(kind Kind, interrupted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := f.counts[kind]
	count.Hits++
	count.Interrupted += interrupted
	f.counts[kind] = count
}
