// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// setExpectations hold what the process wrote for each set until the cache shows it. At the start of the
// process they are empty: what a crashed process wrote is found in the cache, or by its name. They are
// safe for concurrent use.
type setExpectations struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*expectations
	// differ are the sets whose status differs.
	differ map[types.NamespacedName]bool
	// cached are the versions that the stores had last.
	cached versions
	// leaderSince is since when the process is the leader and serves the kind, zero if it does not.
	leaderSince time.Time
}

// leads notes whether the process serves the kind now. What it knows about the pods of sets ends when it does not any more.
func (s *setExpectations) leads(leads bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case leads && s.leaderSince.IsZero():
		s.leaderSince = now
	case !leads && !s.leaderSince.IsZero():
		s.leaderSince = time.Time{}
		for _, e := range s.sets {
			e.looked = false
		}
	}
}

// since returns since when the process serves the kind.
func (s *setExpectations) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaderSince
}

// expectations are the writes for a set that the cache does not show yet, and what else is kept between its reconciles.
type expectations struct {
	uid types.UID
	// set, pods, claims and revisions are the highest resource versions that were written, empty if
	// the cache has them.
	set, pods, claims, revisions string
	// deleted are the pods that were deleted, and that the cache does not show as terminating yet.
	deleted map[types.UID]bool
	// waiting is set if the last reconcile found an old cache: then any event of the set matters.
	// since is when the first of such reconciles in a row was.
	waiting bool
	since   time.Time
	// looked is set when the cache had all pods of the set that the API server had.
	looked bool
	// taken are names of pods that belong to others.
	taken map[string]bool
	// encoder is used by one reconcile at a time.
	encoder revision.Encoder
	// planned is when the last step was planned or waited for the cache, and size the number of pods
	// then.
	planned time.Time
	size    int
	// differs is since when the status of the set differs from that of its last step, zero if it does not.
	differs time.Time
	// generation is that of the last step, and begun is when its first step was planned, zero when the
	// set has converged since.
	generation int64
	begun      time.Time
	// events are those about pods that were not reported yet, and reported is when the last ones were.
	events   []planning.Event
	reported time.Time
	// failures is the number of steps in a row that ended with an error that may pass.
	failures int
}

func newExpectations() *setExpectations {
	return &setExpectations{sets: make(map[types.NamespacedName]*expectations), differ: make(map[types.NamespacedName]bool)}
}

// update calls do with the expectations of the set. Those of an earlier set with the same name are dropped.
func (s *setExpectations) update(key types.NamespacedName, uid types.UID, do func(e *expectations)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sets[key]
	if e == nil || e.uid != uid {
		e = &expectations{uid: uid}
		s.sets[key] = e
	}
	do(e)
}

// updateExisting calls do with the expectations of the set with the name, if it has any.
func (s *setExpectations) updateExisting(key types.NamespacedName, do func(e *expectations)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.sets[key]; e != nil {
		do(e)
	}
}

func (s *setExpectations) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, key)
	delete(s.differ, key)
}

// versions are the resource versions of the stores.
type versions struct{ set, pods, claims, revisions string }

// observe returns the versions that read returns. If they are older than those before, the API server
// was restored from a backup: what was written is lost, and its versions say nothing about the cache.
func (s *setExpectations) observe(read func() versions) versions {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.cached, read()
	s.cached = now
	if objectversion.Older(now.set, before.set) || objectversion.Older(now.pods, before.pods) || objectversion.Older(now.claims, before.claims) ||
		objectversion.Older(now.revisions, before.revisions) {
		for _, e := range s.sets {
			e.set, e.pods, e.claims, e.revisions, e.deleted = "", "", "", "", nil
		}
	}
	return now
}

// caughtUp reports whether the cache has everything that was written for the set. unseen returns which deleted pods
// the cache does not show as terminating. Otherwise the events of the pods report it.
func (e *expectations) caughtUp(cached versions, unseen func(deleted map[types.UID]bool) map[types.UID]bool) bool {
	e.waiting = false
	for _, resource := range []struct {
		wrote  *string
		cached string
	}{{&e.set, cached.set}, {&e.pods, cached.pods}, {&e.claims, cached.claims}, {&e.revisions, cached.revisions}} {
		if objectversion.Older(resource.cached, *resource.wrote) {
			e.waiting = true
		} else {
			*resource.wrote = ""
		}
	}
	if len(e.deleted) > 0 {
		e.deleted = unseen(e.deleted)
		e.waiting = e.waiting || len(e.deleted) > 0
	}
	return !e.waiting
}

// Behind reports whether the store does not have yet what was written with the resource version. An empty version means
// that nothing was.
func Behind(store Store, wrote string) bool { return objectversion.Older(version(store), wrote) }

// The delays after steps in a row that ended with an error that may pass.
const (
	firstRetry  = 100 * time.Millisecond
	maxRetries  = 9
	longestWait = 5 * time.Second
	// longestRefused is the longest one after writes that the API server refused.
	longestRefused = 30 * time.Second
)

// failed counts a step that ended with an error that may pass, and returns the time until the next, which doubles up to the
// longest.
func (e *expectations) failed(longest time.Duration) time.Duration {
	delay := min(firstRetry<<min(e.failures, maxRetries), longest)
	e.failures++
	return delay
}

// isWaiting reports whether the last reconcile of the set found an old cache.
func (s *setExpectations) isWaiting(key types.NamespacedName) (waiting bool) {
	s.updateExisting(key, func(e *expectations) { waiting = e.waiting })
	return waiting
}

func (e *expectations) wrote(outcome *apply.Outcome) {
	for _, resource := range []struct {
		highest *string
		version string
	}{{&e.pods, outcome.Pods}, {&e.claims, outcome.Claims}, {&e.revisions, outcome.Revisions}} {
		if resource.version != "" && (*resource.highest == "" || objectversion.Older(*resource.highest, resource.version)) {
			*resource.highest = resource.version
		}
	}
	for _, uid := range outcome.Deleted {
		if e.deleted == nil {
			e.deleted = make(map[types.UID]bool)
		}
		e.deleted[uid] = true
	}
	for _, name := range outcome.Taken {
		if e.taken == nil {
			e.taken = make(map[string]bool)
		}
		e.taken[name] = true
	}
}

// published records the resource version of the set after a write of its status.
func (s *setExpectations) published(key types.NamespacedName, uid types.UID, version string) {
	s.compared(key, uid, false, time.Time{})
	s.update(key, uid, func(e *expectations) { e.set = version })
}

// compared records whether the status of the set differs from that of its last step, and returns for how
// long it has.
func (s *setExpectations) compared(key types.NamespacedName, uid types.UID, differs bool, now time.Time) (since time.Duration) {
	s.update(key, uid, func(e *expectations) {
		switch {
		case !differs:
			e.differs = time.Time{}
			delete(s.differ, key)
			return
		case e.differs.IsZero():
			e.differs = now
			s.differ[key] = true
		}
		since = now.Sub(e.differs)
	})
	return since
}

// changing returns the number of sets whose status differs.
func (s *setExpectations) changing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.differ)
}

// plans records that a step of the generation for so many pods is planned now.
func (e *expectations) plans(generation int64, pods int, now time.Time) {
	e.planned, e.size, e.since = now, pods, time.Time{}
	if e.generation != generation {
		e.generation, e.begun = generation, now
	}
}

// isBegun reports whether steps for the generation of the set began a short time ago, and the set has
// not converged yet.
func (e *expectations) isBegun(now time.Time) bool {
	return !e.begun.IsZero() && now.Sub(e.begun) < longestPostponement
}

// waits records that a step for so many pods waits for the cache.
func (e *expectations) waits(pods int, now time.Time) {
	if e.planned, e.size = now, pods; e.since.IsZero() {
		e.since = now
	}
}

// The time until a set that waits for the cache is reconciled again grows with the time that it has
// waited: many sets may wait while the API server is down.
const (
	recheck        = 20 * time.Millisecond
	longestRecheck = time.Second
	recheckPart    = 4
)

// recheck returns when a set that waits for the cache is reconciled again without an event, zero if it
// does not wait.
func (e *expectations) recheck(now time.Time) time.Duration {
	if !e.waiting {
		return 0
	}
	return min(max(now.Sub(e.since)/recheckPart, recheck), longestRecheck)
}

// The pause between two steps of a set grows with its size, because the time that a step takes does:
// a burst of events of many pods causes few steps. It is shorter while a step waits for the cache. The
// first event after a pause is handled at once.
const (
	pausePerPod = 30 * time.Microsecond
	longest     = 100 * time.Millisecond
)

// pause returns the time until the next step of the set may be planned.
func (e *expectations) pause(now time.Time) time.Duration {
	limit := longest
	if e.waiting {
		limit = recheck
	}
	return max(0, min(time.Duration(e.size)*pausePerPod, limit)-now.Sub(e.planned))
}
