// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"time"

	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// The limits of the writes to one pod. Changes right after each write: burst writes at once, then one
// per fastest, and the interval doubles with each write up to slowest. All changes: quota writes at
// once, then one per controller.MarkInterval.
const (
	burst   = 5
	fastest = time.Second
	slowest = 30 * time.Second
	quota   = 30
)

// limit bounds the writes to one pod with two token buckets. The first one is refilled only while
// the pod needs no write: marks that change again right after each write, as in a loop of two
// markers, do not refill it, but a pod that changes once per second or less often is never delayed
// by it. The second one is always refilled, and bounds the writes to a pod that changes for a long
// time. The zero value has full buckets. A limit has no clock.
type limit struct {
	// spent is how long the first bucket takes to fill, 0 to burst*fastest.
	spent time.Duration
	// gap is the interval of writes while the first bucket is empty; zero means fastest.
	gap time.Duration
	// wrote is the time of the last write. calm is the time up to which calm is counted.
	wrote, calm time.Time
	// full is when the second bucket is full. saved is whether the write that is needed waits for
	// it, and so does not count as one right after another.
	full  time.Time
	saved bool
	// wanted is whether a write is needed. loops and flaps are whether the first or the second
	// bucket has delayed a write and has not been full again since.
	wanted, loops, flaps bool
}

// wait returns how long the write that is needed now must wait. Zero permits the write. first is
// whether this is the first delay of this write.
func (l *limit) wait(now time.Time) (wait time.Duration, first bool) {
	first = !l.wanted
	l.refill(now)
	l.wanted = true
	if l.spent > (burst-1)*fastest {
		wait = max(0, l.wrote.Add(max(l.gap, fastest)).Sub(now))
		l.loops = l.loops || wait > 0
	}
	if rest := l.full.Add(-(quota - 1) * controller.MarkInterval).Sub(now); rest > wait {
		wait, l.flaps, l.saved = rest, true, true
	}
	return wait, first && wait > 0
}

// written records a write that wait permitted.
func (l *limit) written(now time.Time) {
	switch {
	case l.saved:
	case l.spent <= (burst-1)*fastest:
		l.spent += fastest
	default:
		l.spent = burst * fastest
		l.gap = min(2*max(l.gap, fastest), slowest)
	}
	if l.full.Before(now) {
		l.full = now
	}
	l.full = l.full.Add(controller.MarkInterval)
	l.wanted, l.saved, l.wrote, l.calm = false, false, now, now
}

// settled records that no write is needed. It returns how long the limit stays as it is reported;
// zero means that nothing is limited.
func (l *limit) settled(now time.Time) time.Duration {
	l.refill(now)
	l.wanted, l.saved, l.calm = false, false, now
	switch {
	case l.loops:
		return l.spent
	case l.flaps:
		return l.full.Sub(now)
	default:
		return 0
	}
}

func (l *limit) refill(now time.Time) {
	if l.wanted {
		return
	}
	l.spent = max(0, l.spent-now.Sub(l.calm))
	l.calm = now
	if l.spent == 0 {
		l.gap, l.loops = 0, false
	}
	l.flaps = l.flaps && now.Before(l.full)
}

// unused reports whether both buckets are full, so that the limit equals a new one.
func (l *limit) unused(now time.Time) bool {
	return !l.wanted && l.spent <= now.Sub(l.calm) && !now.Before(l.full)
}

// why returns why the writes are limited.
func (l *limit) why() controller.Limit {
	switch {
	case l.loops:
		return controller.LimitLoop
	case l.flaps:
		return controller.LimitRate
	default:
		return ""
	}
}
