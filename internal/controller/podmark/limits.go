// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// limits holds the limits of the pods that were written recently. A limit whose bucket is full
// again equals a new one and is forgotten. It is safe for concurrent use.
type limits struct {
	mu    sync.Mutex
	by    map[types.NamespacedName]*podLimit
	swept time.Time
}

type podLimit struct {
	limit
	// markers declare the keys that change while the pod is limited.
	markers sets.Set[string]
}

// sweepInterval is the minimum time between two searches for full buckets.
const sweepInterval = time.Minute

func newLimits() *limits {
	return &limits{by: make(map[types.NamespacedName]*podLimit)}
}

// wait returns how long the write that the pod needs must wait, and whether this is the first
// delay of this write. If it waits, the markers that declare its keys are remembered, and began
// is whether the pod was not limited before.
func (l *limits) wait(pod types.NamespacedName, now time.Time, markers func() []string) (wait time.Duration, first, began bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.by[pod]
	if p == nil {
		p = &podLimit{}
		l.by[pod] = p
	}
	before := p.limited
	wait, first = p.wait(now)
	if first {
		p.markers = p.markers.Union(sets.New(markers()...))
	}
	return wait, first, p.limited && !before
}

// written records a write that wait permitted.
func (l *limits) written(pod types.NamespacedName, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.by[pod]; p != nil {
		p.written(now)
	}
	l.sweep(now)
}

// settled records that the pod needs no write. It returns the time until the pod is no longer
// limited; zero means that it is not limited.
func (l *limits) settled(pod types.NamespacedName, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.by[pod]
	if p == nil {
		return 0
	}
	rest := p.settled(now)
	if rest == 0 {
		delete(l.by, pod)
	}
	if !p.limited {
		return 0
	}
	return rest
}

// of returns the names of the markers that declare the keys of the limited writes. They are none
// if the pod is not limited.
func (l *limits) of(pod types.NamespacedName) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.by[pod]; p != nil && p.limited {
		return sets.List(p.markers)
	}
	return nil
}

func (l *limits) forget(pod types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, pod)
}

// sweep forgets full buckets. Limited pods are settled by a reconcile of their own.
func (l *limits) sweep(now time.Time) {
	if now.Sub(l.swept) < sweepInterval {
		return
	}
	l.swept = now
	for pod, p := range l.by {
		if !p.wanted && !p.limited && now.Sub(p.calm) > burst*fastest {
			delete(l.by, pod)
		}
	}
	if len(l.by) == 0 {
		// Maps keep their memory.
		l.by = make(map[types.NamespacedName]*podLimit)
	}
}
