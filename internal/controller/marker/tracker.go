// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// minRecheck and maxRecheck limit the delay until the remaining objects are checked without
	// an event. In between, the delay is the time without progress, so it doubles.
	minRecheck = time.Second
	maxRecheck = time.Minute
	// patience is the time without progress after which the status names what blocks the
	// deletion. It is longer than plans take to settle.
	patience = 3 * time.Second
	// adviceDelay is the time without progress after which the status says how to proceed.
	adviceDelay = time.Minute
)

// releases tracks the markers that are being deleted: which pods and plans still have something
// of them, and which of these changed since they were checked. Pods are named by namespace and
// name, plans by the name of their node only. It is safe for concurrent use.
type releases struct {
	mu sync.Mutex
	by map[types.NamespacedName]*pending
}

// pending is one marker that is being deleted.
type pending struct {
	uid types.UID
	// left are the objects that still have something of the marker. changed are those of them
	// that must be checked again.
	left, changed sets.Set[types.NamespacedName]
	// progress is when the last object became clean. next is when all that are left are checked
	// without an event.
	progress, next time.Time
}

func newReleases() *releases {
	return &releases{by: make(map[types.NamespacedName]*pending)}
}

// tracks reports whether objects with something of the marker are known.
func (r *releases) tracks(marker types.NamespacedName, uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, found := r.by[marker]
	return found && p.uid == uid && len(p.left) > 0
}

// start replaces what is left of the marker. All objects must be checked once more: their events
// were not tracked while they were found.
func (r *releases) start(marker types.NamespacedName, uid types.UID, left sets.Set[types.NamespacedName], now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[marker] = &pending{uid: uid, left: left, changed: left.Clone(), progress: now, next: now.Add(minRecheck)}
}

// changed records that the object changed, and returns the markers that it was left of.
func (r *releases) changed(object types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var affected []types.NamespacedName
	for marker, p := range r.by {
		if p.left.Has(object) {
			p.changed.Insert(object)
			affected = append(affected, marker)
		}
	}
	return affected
}

// take returns the objects to check, and whether these are all that are left because the marker
// is due without an event.
func (r *releases) take(marker types.NamespacedName, now time.Time) (objects sets.Set[types.NamespacedName], due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, found := r.by[marker]
	if !found {
		return nil, false
	}
	objects, p.changed = p.changed, sets.New[types.NamespacedName]()
	if now.Before(p.next) {
		return objects, false
	}
	return p.left.Clone(), true
}

// clean removes objects that have nothing of the marker, and returns how many are left and for how
// long there has been no progress.
func (r *releases) clean(marker types.NamespacedName, objects sets.Set[types.NamespacedName], now time.Time) (left int, stalled time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, found := r.by[marker]
	if !found {
		return 0, 0
	}
	before := len(p.left)
	p.left.Delete(objects.UnsortedList()...)
	if len(p.left) < before {
		p.progress, p.next = now, now.Add(minRecheck)
	}
	return len(p.left), now.Sub(p.progress)
}

// again makes objects be checked again, because a check failed.
func (r *releases) again(marker types.NamespacedName, objects sets.Set[types.NamespacedName]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, found := r.by[marker]; found {
		p.changed = p.changed.Union(objects)
	}
}

// delay returns when the marker must be reconciled without an event. If it is due, it schedules
// the next time.
func (r *releases) delay(marker types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, found := r.by[marker]
	if !found {
		return minRecheck
	}
	if !now.Before(p.next) {
		p.next = now.Add(min(max(now.Sub(p.progress), minRecheck), maxRecheck))
	}
	return p.next.Sub(now)
}

func (r *releases) forget(marker types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, marker)
}
