// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// The limits of the writes to one pod. Changes right after each write: burst writes at once, then one
// per fastest, and the interval doubles with each write up to slowest. All changes: quota writes at
// once, then one per problems.MarkInterval.
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
	// markers declare the keys that change while the pod is limited. They are at most maxDeclaring.
	markers sets.Set[string]
}

// blame remembers markers that declare the keys. Copies of the limit share the set, which is not changed.
func (l *limit) blame(markers []string) {
	all := l.markers.Union(nil)
	for _, marker := range markers {
		if all.Len() < maxDeclaring {
			all.Insert(marker)
		}
	}
	l.markers = all
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
	if refilled := l.full.Add(-(quota - 1) * problems.MarkInterval).Sub(now); refilled > wait {
		wait, l.flaps, l.saved = refilled, true, true
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
	l.full = l.full.Add(problems.MarkInterval)
	l.wanted, l.saved, l.wrote, l.calm = false, false, now, now
}

// unneeded records that no write is needed. It returns how long the limit stays as it is reported;
// zero means that nothing is limited.
func (l *limit) unneeded(now time.Time) time.Duration {
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

func (l *limit) why() problems.Limit {
	switch {
	case l.loops:
		return problems.LimitLoop
	case l.flaps:
		return problems.LimitRate
	default:
		return ""
	}
}

// limits holds the limits of the pods that were written recently. It is safe for concurrent use.
type limits struct {
	pods keyed.Store[types.NamespacedName, limit]
	// swept is when the unused limits were last removed, in nanoseconds of Unix time.
	swept atomic.Int64
}

// sweepInterval is the minimum time between two searches for unused limits.
const sweepInterval = time.Minute

// wait returns how long the write that the pod needs must wait, and whether this is the first
// delay of this write. If it waits, the markers that declare its keys are remembered, and began
// is why the pod is limited if it was not before.
func (l *limits) wait(pod types.NamespacedName, now time.Time, markers func() []string) (wait time.Duration, first bool, began problems.Limit) {
	l.pods.Update(pod, func(p *limit) bool {
		before := p.why()
		if wait, first = p.wait(now); first {
			p.blame(markers())
		}
		if before == "" {
			began = p.why()
		}
		return true
	})
	return wait, first, began
}

// written records a write that wait permitted.
func (l *limits) written(pod types.NamespacedName, now time.Time) {
	l.pods.Update(pod, func(p *limit) bool {
		p.written(now)
		return true
	})
	if last := l.swept.Load(); now.UnixNano()-last >= int64(sweepInterval) && l.swept.CompareAndSwap(last, now.UnixNano()) {
		// Limited pods are checked by a reconcile of their own, which reports the end.
		l.pods.Expire(func(_ types.NamespacedName, p limit) bool { return p.why() == "" && p.unused(now) })
	}
}

// unneeded records that the pod needs no write. It returns the time after which the pod must be
// checked again, because its limit may end; zero means that it is not limited.
func (l *limits) unneeded(pod types.NamespacedName, now time.Time) (remaining time.Duration) {
	l.pods.Update(pod, func(p *limit) bool {
		remaining = p.unneeded(now)
		return !p.unused(now)
	})
	return remaining
}

// problem returns why the writes are limited, and the names of the markers that declare their keys. They
// are none if the pod is not limited.
func (l *limits) problem(pod types.NamespacedName) (problems.Limit, []string) {
	p, _ := l.pods.Get(pod)
	if p.why() == "" {
		return "", nil
	}
	return p.why(), sets.List(p.markers)
}
