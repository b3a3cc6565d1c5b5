// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// change is the difference between a pod's marks and those that it should have.
type change struct {
	// owned are Seamark's marks on the pod. all are those that it should have. desired are all
	// without those of the refused probes, and without those that the next write may not set: see podview.Pod.InGroup.
	owned, all, desired mark.Marks
	// leftover are keys to remove that other managers own.
	leftover []mark.Key
	// claims are the probes that the marks belong to. order are the planned probes.
	claims mark.Claims
	order  []plan.PlannedProbe
	// refused is what the API server does not accept of the change.
	refused refused
	// values are the keys without a valid value in the messages of their probes.
	values []mark.ValueRefusal
	// stale is whether a state of the pod is stale.
	stale bool
	// view has the contests for exclusive marks.
	view podview.Pod
}

func (c change) isEmpty() bool { return len(c.leftover) == 0 && c.desired.Equal(c.owned) }

// differences returns the marks to set and to remove, ordered by kind and name.
func (c change) differences() (set, removed []mark.Key) {
	set, removed = mark.Differences(c.owned, c.desired)
	return set, append(removed, c.leftover...)
}

// log logs the marks that were set and removed.
func (c change) log(lines logr.Logger) {
	if !lines.Enabled() || c.desired.Equal(c.owned) {
		return
	}
	set, removed := c.differences()
	message := "Marked pod"
	if len(c.desired) == 0 {
		message = "Unmarked pod"
	}
	lines.Info(message, "set", names(set), "removed", names(removed))
}

func names(keys []mark.Key) []string {
	var all []string
	for _, key := range keys {
		all = append(all, key.String())
	}
	return all
}

// maxDeclaring is the maximum number of markers that are blamed for a limited pod at a time.
const maxDeclaring = 16

// declaring returns the names of those of the markers that select the pod and declare one of the changed keys, at most
// maxDeclaring. A marker that the pod changes between selecting and not is found when it selects.
func (c change) declaring(pod *corev1.Pod, markers []*plan.Marker) []string {
	set, removed := c.differences()
	changed := sets.New(append(set, removed...)...)
	var found []string
	for _, marker := range markers {
		declares := func(probe *v1alpha1.PodContainerProbe) bool { return changed.HasAny(mark.Declared(probe)...) }
		if marker.Selects(pod) && marker.AnyProbe(declares) {
			found = append(found, marker.Name)
		}
		if len(found) == maxDeclaring {
			break
		}
	}
	return found
}

// ids returns the planned probes in order.
func (c change) ids() []identity.ID {
	var ids []identity.ID
	for _, probe := range c.order {
		ids = append(ids, probe.ID)
	}
	return ids
}

// keptBy returns the probes that declare the kept keys, with the reason.
func (c change) keptBy() []mark.Refusal {
	var refusals []mark.Refusal
	for _, key := range c.refused.kept {
		if probe, declared := c.claims[key]; declared {
			refusals = append(refusals, mark.Refusal{Probe: probe, Reason: c.refused.reason})
		}
	}
	return refusals
}

// isRefusal reports whether the API server refuses the content of a write, so that a retry
// cannot succeed: invalid or too large marks, or the denial of an admission policy or webhook.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// searchInterval is the time after a search for the refused probes in which the same probes are
// omitted without another search, if the API server accepts the marks of the others.
const searchInterval = 30 * time.Second

// refused is what the API server refuses to write to a pod: the marks of some probes, or the removal
// of keys. As long as neither the pod nor its marks change, it is not tried again.
type refused struct {
	uid types.UID
	// version is the resource version of the pod after the last write. desired are all marks, and
	// claims are the probes that they belong to.
	version string
	desired mark.Marks
	claims  mark.Claims
	probes  []mark.Refusal
	// kept are the keys whose removal is refused for the reason.
	kept   []mark.Key
	reason error
	// until is the end of the searchInterval. again is whether the pod or its marks have changed
	// since the search, so that another search may find fewer probes.
	until time.Time
	again bool
}

func (r refused) isEmpty() bool { return len(r.probes) == 0 && len(r.kept) == 0 }

// due returns how long after now another search is needed. Zero means that none is.
func (r refused) due(now time.Time) time.Duration {
	if !r.again {
		return 0
	}
	return max(time.Millisecond, r.until.Sub(now))
}

// applies reports whether the same is still refused without a try: neither the pod nor its marks
// have changed, and no search is due.
func (r refused) applies(pod *corev1.Pod, desired mark.Marks, claims mark.Claims, now time.Time) bool {
	if r.uid != pod.UID || r.again && !now.Before(r.until) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, r.version)
	return err == nil && order <= 0 && r.desired.Equal(desired) && maps.Equal(r.claims, claims)
}

// omit returns the change without the marks of the probes.
func (c change) omit(probes []mark.Refusal, until time.Time, again bool) change {
	ids := sets.New[identity.ID]()
	for _, refusal := range probes {
		ids.Insert(refusal.Probe)
	}
	c.desired = c.view.InGroup(c.owned, c.view.KeepTickets(c.owned, c.all, c.all.Without(c.claims, ids)))
	c.refused.probes, c.refused.until, c.refused.again = probes, until, again
	return c
}
