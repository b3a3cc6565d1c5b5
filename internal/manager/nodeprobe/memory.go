// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// debounce is how long a node's inputs must be unchanged before its plan is compiled, and the
// maximum time that the plan waits if they keep changing.
type debounce struct {
	idle, limit time.Duration
}

// afterPod applies to changes of the node and its pods.
func afterPod() debounce { return debounce{idle: 100 * time.Millisecond, limit: time.Second} }

// afterMarker applies to changes of markers. It is longer, because markers are often applied
// one after the other, and each changes the plans of many nodes.
func afterMarker() debounce {
	return debounce{idle: 300 * time.Millisecond, limit: 1500 * time.Millisecond}
}

// burst is a series of changes to one node's inputs since its last compilation. Its debounce
// times are the longest of these changes. The zero value has no change and is due.
type burst struct {
	first, last time.Time
	debounce    debounce
}

// wait returns how long the compilation still has to wait at the time now; zero means that it
// is due.
func (b burst) wait(now time.Time) time.Duration {
	due := b.last.Add(b.debounce.idle)
	if limit := b.first.Add(b.debounce.limit); limit.Before(due) {
		due = limit
	}
	return max(0, due.Sub(now))
}

// touch adds a change to the burst.
func (b *burst) touch(now time.Time, debounce debounce) {
	if b.first.IsZero() {
		b.first = now
	}
	b.last = now
	b.debounce.idle = max(b.debounce.idle, debounce.idle)
	b.debounce.limit = max(b.debounce.limit, debounce.limit)
}

// unstoredFor is how long such a plan is not written again. The CRD may get the fields meanwhile.
const unstoredFor = 10 * time.Minute

// unstored is a write that did not change the stored plan: the API server stores plans without some
// of their fields if its CRD, such as that of OpenKruise, does not have them. The plan in the cache
// then never equals the compiled one, and each compilation would write it again.
type unstored struct {
	write [sha256.Size]byte
	until time.Time
}

// writeOf identifies a plan and the object to which it is written.
func writeOf(object client.Object, pods []v1alpha1.PodProbe) [sha256.Size]byte {
	// The types of a plan always encode.
	encoded, _ := json.Marshal([]any{object.GetUID(), object.GetGeneration(), pods})
	return sha256.Sum256(encoded)
}

// createdFor is how long a created ProbePlan counts as stored although the cache does not have it. It
// may be deleted before the cache gets it.
const createdFor = 10 * time.Second

// creation is a ProbePlan that was created, until the cache has it.
type creation struct {
	slice *seamarkv1alpha1.ProbePlan
	until time.Time
}

// loss is the deletion or change of a ProbeReport by another client than its agent. It is remembered
// until the agent is asked to restore its ProbeReports.
type loss struct {
	// value identifies the loss, for the agent.
	value string
	// version is the resource version of the deletion or change.
	version string
	// pods are those that were deleted or removed. The loss matters if one of them is planned. A
	// change always matters, and has none.
	pods []seamarkv1alpha1.PodReport
}

// matters reports whether the agent can restore something.
func (l loss) matters(npp *v1alpha1.NodePodProbe) bool { return l.pods == nil || plansAny(npp, l.pods) }

func deletion(slice *seamarkv1alpha1.ProbeReport) loss {
	return loss{value: slice.Name + "/" + string(slice.UID), version: slice.ResourceVersion, pods: slice.Pods}
}

// change returns the loss of a ProbeReport that another client changed.
func change(slice *seamarkv1alpha1.ProbeReport) loss {
	return loss{value: slice.Name + "/" + slice.ResourceVersion, version: slice.ResourceVersion}
}

// removal returns the loss of a ProbeReport from which another client removed the pods. A removed
// field has no owner, but agents write no ProbeReport without pods.
func removal(before, after *seamarkv1alpha1.ProbeReport) loss {
	lost := change(after)
	lost.pods = before.Pods
	return lost
}

// unreported returns the loss of unknown ProbeReports with the pods. No earlier loss has the version of the NodePodProbe.
func unreported(npp *v1alpha1.NodePodProbe, pods []seamarkv1alpha1.PodReport) loss {
	return loss{value: "unreported/" + npp.ResourceVersion, version: npp.ResourceVersion, pods: pods}
}

// join returns the last of both losses, with the pods of both: agents restore all of their
// ProbeReports at once. The value is that of the latest loss, so the order of the initial events does
// not matter.
func (l loss) join(other loss) loss {
	if l.value == "" {
		return other
	}
	latest := other
	if order, err := resourceversion.CompareResourceVersion(other.version, l.version); err == nil && order < 0 {
		latest = l
	}
	latest.pods = nil
	if l.pods != nil && other.pods != nil {
		latest.pods = slices.Concat(l.pods, other.pods)
	}
	return latest
}

func plansAny(npp *v1alpha1.NodePodProbe, pods []seamarkv1alpha1.PodReport) bool {
	reported := sets.New[string]()
	for i := range pods {
		reported.Insert(pods[i].UID)
	}
	return slices.ContainsFunc(npp.Spec.PodProbes, func(pod v1alpha1.PodProbe) bool { return reported.Has(pod.UID) })
}
