// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// isRefusal reports whether the API server refuses the content of a write, so that a retry
// cannot succeed: invalid or too large marks, or the denial of an admission policy or webhook.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// searchInterval is the time after a search for the refused probes in which the same probes are
// omitted without another search, if the API server accepts the marks of the others.
const searchInterval = 30 * time.Second

// refusals remembers the pods for which the API server refuses the marks of some probes, or the
// removal of keys. As long as neither the pod nor its marks change, they are not tried again. It
// is safe for concurrent use.
type refusals struct {
	mu sync.Mutex
	by map[types.NamespacedName]refused
}

// refused is the result of one search for the refused probes of a pod.
type refused struct {
	uid types.UID
	// version is the resource version of the pod after the write without the refused marks.
	version string
	// desired are all marks, and claims are the probes that they belong to.
	desired mark.Marks
	claims  mark.Claims
	probes  []mark.Refusal
	// kept are the keys whose removal is refused for the reason.
	kept   []mark.Key
	reason error
	// searched is the time of the search. repeated is whether the pod or its marks have changed
	// since, so that another search may find fewer probes.
	searched time.Time
	repeated bool
}

func (r refused) isEmpty() bool { return len(r.probes) == 0 && len(r.kept) == 0 }

// due returns how long after now another search is needed. Zero means that none is.
func (r refused) due(now time.Time) time.Duration {
	if !r.repeated {
		return 0
	}
	return max(time.Millisecond, r.searched.Add(searchInterval).Sub(now))
}

func newRefusals() *refusals {
	return &refusals{by: make(map[types.NamespacedName]refused)}
}

// of returns what is refused for the pod with the UID and the resource version, if the desired
// marks are still the same and no search is due.
func (r *refusals) of(pod types.NamespacedName, uid types.UID, version string, desired mark.Marks, claims mark.Claims, now time.Time) refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.by[pod]
	if !found || last.repeated && now.Sub(last.searched) >= searchInterval {
		return refused{}
	}
	order, err := resourceversion.CompareResourceVersion(version, last.version)
	if err == nil && order <= 0 && last.uid == uid && last.desired.Equal(desired) && maps.Equal(last.claims, claims) {
		return last
	}
	return refused{}
}

// recent returns the probes that a recent search found, without those that have no marks now, and
// the time of the search.
func (r *refusals) recent(pod types.NamespacedName, uid types.UID, desired mark.Marks, claims mark.Claims, now time.Time) ([]mark.Refusal, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.by[pod]
	if last.uid != uid || now.Sub(last.searched) >= searchInterval {
		return nil, now
	}
	var found []mark.Refusal
	for _, refusal := range last.probes {
		if len(desired.Without(claims, sets.New(refusal.Probe))) < len(desired) {
			found = append(found, refusal)
		}
	}
	return found, last.searched
}

func (r *refusals) remember(pod types.NamespacedName, last refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[pod] = last
}

// has reports whether marks of the pod are refused. Any change of the pod may then make room for
// them.
func (r *refusals) has(pod types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.by[pod]
	return found
}

func (r *refusals) forget(pod types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, pod)
}

func probesOf(all []mark.Refusal) sets.Set[probeid.ID] {
	probes := sets.New[probeid.ID]()
	for _, refusal := range all {
		probes.Insert(refusal.Probe)
	}
	return probes
}
