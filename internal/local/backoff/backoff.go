// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backoff says when a container that has ended may start again: the crash-loop
// delay of the kubelet. It is pure.
//
// The first restart is at once, and each one after it waits twice as long as the one
// before, counted from the end of the container, up to a maximum. A container that ends
// later than ResetAfter from its last restart starts over.
package backoff

import "time"

const (
	// DefaultInitial is the kubelet's first delay.
	DefaultInitial = 10 * time.Second
	// DefaultMax is the kubelet's longest delay.
	DefaultMax = 5 * time.Minute

	// ResetAfter is how long after a restart the delay is forgotten.
	ResetAfter = 10 * time.Minute
)

// Policy bounds the delay. Zero fields mean the defaults.
type Policy struct {
	// Initial is the first delay, Max the longest.
	Initial, Max time.Duration
}

// Entry is what is remembered of one container. The zero value has never been restarted.
type Entry struct {
	// Delay is how long the next restart waits, counted from the container's end.
	Delay time.Duration
	// Updated is when the container was last restarted.
	Updated time.Time
}

// Until returns when a container that ended at finished may start again. That is finished
// itself where it need not wait.
func (e Entry) Until(finished time.Time) time.Time {
	if e.expired(finished) {
		return finished
	}
	return finished.Add(e.Delay)
}

// Restarted returns what is to be remembered after a container that ended at finished has
// been restarted at now.
func (p Policy) Restarted(e Entry, finished, now time.Time) Entry {
	initial, limit := p.bounds()
	if e.expired(finished) {
		return Entry{Delay: initial, Updated: now}
	}
	return Entry{Delay: min(2*e.Delay, limit), Updated: now}
}

func (e Entry) expired(finished time.Time) bool {
	return e.Delay == 0 || finished.Sub(e.Updated) > ResetAfter
}

// bounds returns the delays with the defaults filled in. A first delay above the maximum
// is the maximum.
func (p Policy) bounds() (initial, limit time.Duration) {
	initial, limit = p.Initial, p.Max
	if limit <= 0 {
		limit = DefaultMax
	}
	if initial <= 0 {
		initial = DefaultInitial
	}
	return min(initial, limit), limit
}
