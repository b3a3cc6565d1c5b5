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

// memory remembers what the process wrote for each set until the cache has it. At the start of the
// process it is empty: what a crashed process wrote is found in the cache, or by its name. It is
// safe for concurrent use.
type memory struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*remembered
	// differ are the sets whose status differs.
	differ map[types.NamespacedName]bool
	// cached are the versions that the stores had last.
	cached versions
	// leaderSince is since when the process is the leader and serves the kind, zero if it does not.
	leaderSince time.Time
}

// leads notes whether the process serves the kind now. What it knows about the pods of sets ends when it does not any more.
func (m *memory) leads(leads bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case leads && m.leaderSince.IsZero():
		m.leaderSince = now
	case !leads && !m.leaderSince.IsZero():
		m.leaderSince = time.Time{}
		for _, r := range m.sets {
			r.looked = false
		}
	}
}

// since returns since when the process serves the kind.
func (m *memory) since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leaderSince
}

// remembered is what is remembered about a set.
type remembered struct {
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
	// set has settled since.
	generation int64
	begun      time.Time
	// events are those about pods that were not reported yet, and reported is when the last ones were.
	events   []planning.Event
	reported time.Time
	// failures is the number of steps in a row that ended with an error that may pass.
	failures int
}

func newMemory() *memory {
	return &memory{sets: make(map[types.NamespacedName]*remembered), differ: make(map[types.NamespacedName]bool)}
}

// of calls do with what is remembered about the set. What belongs to an earlier set with the same name is
// forgotten.
func (m *memory) of(key types.NamespacedName, uid types.UID, do func(r *remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.sets[key]
	if r == nil || r.uid != uid {
		r = &remembered{uid: uid}
		m.sets[key] = r
	}
	do(r)
}

// known calls do with what is remembered about the set with the name, if anything is.
func (m *memory) known(key types.NamespacedName, do func(r *remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.sets[key]; r != nil {
		do(r)
	}
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, key)
	delete(m.differ, key)
}

// versions are the resource versions of the stores.
type versions struct{ set, pods, claims, revisions string }

// observe returns the versions that read returns. If they are older than those before, the API server
// was restored from a backup: what was written is lost, and its versions say nothing about the cache.
func (m *memory) observe(read func() versions) versions {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := m.cached, read()
	m.cached = now
	if objectversion.Older(now.set, before.set) || objectversion.Older(now.pods, before.pods) || objectversion.Older(now.claims, before.claims) ||
		objectversion.Older(now.revisions, before.revisions) {
		for _, r := range m.sets {
			r.set, r.pods, r.claims, r.revisions, r.deleted = "", "", "", "", nil
		}
	}
	return now
}

// caughtUp reports whether the cache has everything that was written for the set. unseen returns which deleted pods
// the cache does not show as terminating. Otherwise the events of the pods report it.
func (r *remembered) caughtUp(cached versions, unseen func(deleted map[types.UID]bool) map[types.UID]bool) bool {
	r.waiting = false
	for _, each := range []struct {
		wrote  *string
		cached string
	}{{&r.set, cached.set}, {&r.pods, cached.pods}, {&r.claims, cached.claims}, {&r.revisions, cached.revisions}} {
		if objectversion.Older(each.cached, *each.wrote) {
			r.waiting = true
		} else {
			*each.wrote = ""
		}
	}
	if len(r.deleted) > 0 {
		r.deleted = unseen(r.deleted)
		r.waiting = r.waiting || len(r.deleted) > 0
	}
	return !r.waiting
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
func (r *remembered) failed(longest time.Duration) time.Duration {
	delay := min(firstRetry<<min(r.failures, maxRetries), longest)
	r.failures++
	return delay
}

// isWaiting reports whether the last reconcile of the set found an old cache.
func (m *memory) isWaiting(key types.NamespacedName) (waiting bool) {
	m.known(key, func(r *remembered) { waiting = r.waiting })
	return waiting
}

func (r *remembered) wrote(step *apply.Step) {
	for _, each := range []struct {
		highest *string
		version string
	}{{&r.pods, step.Pods}, {&r.claims, step.Claims}, {&r.revisions, step.Revisions}} {
		if each.version != "" && (*each.highest == "" || objectversion.Older(*each.highest, each.version)) {
			*each.highest = each.version
		}
	}
	for _, uid := range step.Deleted {
		if r.deleted == nil {
			r.deleted = make(map[types.UID]bool)
		}
		r.deleted[uid] = true
	}
	for _, name := range step.Taken {
		if r.taken == nil {
			r.taken = make(map[string]bool)
		}
		r.taken[name] = true
	}
}

// published remembers the resource version of the set after a write of its status.
func (m *memory) published(key types.NamespacedName, uid types.UID, version string) {
	m.compared(key, uid, false, time.Time{})
	m.of(key, uid, func(r *remembered) { r.set = version })
}

// compared remembers whether the status of the set differs from that of its last step, and returns for how
// long it has.
func (m *memory) compared(key types.NamespacedName, uid types.UID, differs bool, now time.Time) (since time.Duration) {
	m.of(key, uid, func(r *remembered) {
		switch {
		case !differs:
			r.differs = time.Time{}
			delete(m.differ, key)
			return
		case r.differs.IsZero():
			r.differs = now
			m.differ[key] = true
		}
		since = now.Sub(r.differs)
	})
	return since
}

// changing returns the number of sets whose status differs.
func (m *memory) changing() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.differ)
}

// plans remembers that a step of the generation for so many pods is planned now.
func (r *remembered) plans(generation int64, pods int, now time.Time) {
	r.planned, r.size, r.since = now, pods, time.Time{}
	if r.generation != generation {
		r.generation, r.begun = generation, now
	}
}

// isBegun reports whether steps for the generation of the set began a short time ago, and the set has
// not settled yet.
func (r *remembered) isBegun(now time.Time) bool {
	return !r.begun.IsZero() && now.Sub(r.begun) < longestPostponement
}

// waits remembers that a step for so many pods waits for the cache.
func (r *remembered) waits(pods int, now time.Time) {
	if r.planned, r.size = now, pods; r.since.IsZero() {
		r.since = now
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
func (r *remembered) recheck(now time.Time) time.Duration {
	if !r.waiting {
		return 0
	}
	return min(max(now.Sub(r.since)/recheckPart, recheck), longestRecheck)
}

// The pause between two steps of a set grows with its size, because the time that a step takes does:
// a burst of events of many pods causes few steps. It is shorter while a step waits for the cache. The
// first event after a pause is handled at once.
const (
	pausePerPod = 30 * time.Microsecond
	longest     = 100 * time.Millisecond
)

// pause returns the time until the next step of the set may be planned.
func (r *remembered) pause(now time.Time) time.Duration {
	limit := longest
	if r.waiting {
		limit = recheck
	}
	return max(0, min(time.Duration(r.size)*pausePerPod, limit)-now.Sub(r.planned))
}
