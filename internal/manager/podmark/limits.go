// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// limits holds the limits of the pods that were written recently. It is safe for concurrent use.
type limits struct {
	pods keyed.Store[types.NamespacedName, podLimit]
	// swept is when the unused limits were last removed, in nanoseconds of Unix time.
	swept atomic.Int64
}

type podLimit struct {
	limit
	// markers declare the keys that change while the pod is limited.
	markers sets.Set[string]
}

// sweepInterval is the minimum time between two searches for unused limits.
const sweepInterval = time.Minute

// wait returns how long the write that the pod needs must wait, and whether this is the first
// delay of this write. If it waits, the markers that declare its keys are remembered, and began
// is why the pod is limited if it was not before.
func (l *limits) wait(pod types.NamespacedName, now time.Time, markers func() []string) (wait time.Duration, first bool, began controller.Limit) {
	l.pods.Update(pod, func(p *podLimit) bool {
		before := p.why()
		if wait, first = p.wait(now); first {
			p.markers = p.markers.Union(sets.New(markers()...))
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
	l.pods.Update(pod, func(p *podLimit) bool {
		p.written(now)
		return true
	})
	if last := l.swept.Load(); now.UnixNano()-last >= int64(sweepInterval) && l.swept.CompareAndSwap(last, now.UnixNano()) {
		// Limited pods are settled by a reconcile of their own, which reports the end.
		l.pods.Expire(func(_ types.NamespacedName, p podLimit) bool { return p.why() == "" && p.unused(now) })
	}
}

// settled records that the pod needs no write. It returns the time after which the pod must be
// settled again, because its limit may end; zero means that it is not limited.
func (l *limits) settled(pod types.NamespacedName, now time.Time) (rest time.Duration) {
	l.pods.Update(pod, func(p *podLimit) bool {
		rest = p.settled(now)
		return !p.unused(now)
	})
	return rest
}

// of returns why the writes are limited, and the names of the markers that declare their keys. They
// are none if the pod is not limited.
func (l *limits) of(pod types.NamespacedName) (controller.Limit, []string) {
	p, _ := l.pods.Get(pod)
	if p.why() == "" {
		return "", nil
	}
	return p.why(), sets.List(p.markers)
}
