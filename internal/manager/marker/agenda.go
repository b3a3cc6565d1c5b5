// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

const (
	// minPause is the minimum time between two passes over a namespace.
	minPause = 20 * time.Millisecond
	// pauseFactor is how much longer a namespace pauses than its last pass computed, so that a
	// namespace with many markers and pods takes at most a quarter of one processor.
	pauseFactor = 3
	// everyMarker stands for all markers of a namespace.
	everyMarker = ""
)

// agenda holds which markers of each namespace must be handled, and when. All that are due are
// handled in one pass, which reads pods and plans once, and a namespace occupies at most one
// worker. It is safe for concurrent use. The zero value is ready for use.
type agenda struct {
	namespaces keyed.Store[string, schedule]
}

type schedule struct {
	// due is when each marker must be handled, by its name.
	due map[string]time.Time
	// woken is whether the next pass handles all markers in due.
	woken bool
	// pausedUntil is when the next pass may start.
	pausedUntil time.Time
}

// appointment is a marker that must be handled at a time.
type appointment struct {
	marker string
	at     time.Time
}

// add makes the markers be handled at the time, or earlier if they are due earlier.
func (a *agenda) add(namespace string, appointments ...appointment) {
	if len(appointments) == 0 {
		return
	}
	a.namespaces.Update(namespace, func(s *schedule) bool {
		if s.due == nil {
			s.due = make(map[string]time.Time)
		}
		for _, each := range appointments {
			s.due[each.marker] = earliest.Time(s.due[each.marker], each.at)
		}
		return true
	})
}

// wake makes the next pass handle all markers of the namespace that are to be handled at any time,
// and reports whether there are any.
func (a *agenda) wake(namespace string) bool {
	found := false
	a.namespaces.Update(namespace, func(s *schedule) bool {
		found = len(s.due) > 0
		s.woken = found
		return found || !s.pausedUntil.IsZero()
	})
	return found
}

// take removes and returns the markers that are due, those that have waited longest first. If the
// namespace has to pause, it returns for how long.
func (a *agenda) take(namespace string, now time.Time) (due []appointment, wait time.Duration) {
	a.namespaces.Update(namespace, func(s *schedule) bool {
		if wait = max(0, s.pausedUntil.Sub(now)); wait > 0 {
			return true
		}
		for marker, at := range s.due {
			if s.woken || !now.Before(at) {
				due = append(due, appointment{marker, at})
				delete(s.due, marker)
			}
		}
		s.woken = false
		return true
	})
	slices.SortFunc(due, func(a, b appointment) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.marker, b.marker)) })
	return due, wait
}

// finish ends a pass that computed for the given time, and returns after which time the next one
// must start, or zero if no marker is to be handled. It forgets a namespace that is empty.
func (a *agenda) finish(namespace string, computed time.Duration, empty bool, now time.Time) time.Duration {
	var wait time.Duration
	a.namespaces.Update(namespace, func(s *schedule) bool {
		if empty && len(s.due) == 0 {
			return false
		}
		s.pausedUntil = now.Add(max(minPause, pauseFactor*computed))
		if len(s.due) == 0 {
			return true
		}
		next := s.pausedUntil
		if !s.woken {
			first := slices.MinFunc(slices.Collect(maps.Values(s.due)), time.Time.Compare)
			next = slices.MaxFunc([]time.Time{next, first}, time.Time.Compare)
		}
		wait = next.Sub(now)
		return true
	})
	return wait
}
