// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
)

// confirmDelay is when the agent lists the slices a second time after the first object is known,
// plus up to as much again. An earlier agent of the node that has not ended yet may have written a
// slice after the first list, and others may have deleted slices while there was no object.
const confirmDelay = 30 * time.Second

// relistJitter is the maximum delay of the list of slices after the watch was listed again, which all
// agents do after a restart of the API server.
const relistJitter = 5 * time.Minute

// list lists the slices if that is due, and compares them with the record. No write is in
// progress meanwhile.
func (r *reporter) list(ctx context.Context) {
	if !r.listDue(time.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	stored, err := r.store.ListSlices(ctx)
	if err != nil {
		if r.lists.failed() && ctx.Err() == nil {
			r.log.Error(err, "Failed to list reports, retrying")
		}
		r.listBy(r.lists.notBefore)
		return
	}
	if r.lists.succeeded() {
		r.log.Info("Resumed listing reports")
	}
	r.compare(stored)
}

// listDue reports whether the slices are to be listed now.
func (r *reporter) listDue(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listAt.IsZero() || r.listAt.After(now) || r.lists.notBefore.After(now) {
		return false
	}
	r.listAt = time.Time{}
	return true
}

// listBy schedules a list at t or earlier.
func (r *reporter) listBy(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	schedule(r.wake, &r.listAt, t)
}

// compare takes the slices of a list. The first are those of an earlier agent. Later ones are
// compared with what this agent has written, and repaired.
func (r *reporter) compare(stored []seamarkv1alpha1.ProbeReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.stored = stored
		close(r.listed)
		return
	}
	r.adopt(stored)
	if r.relisted {
		r.relisted = false
		r.status.Relisted()
	}
}

// Relisted schedules a comparison of what is stored with what this agent has written. The database of
// the API server may have been restored from an older copy.
func (r *reporter) Relisted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.relisted = true
	if r.read {
		schedule(r.wake, &r.listAt, time.Now().Add(r.jitter(relistJitter)))
	}
}

// adopt repairs the slices that differ from what this agent has written. A slice with other
// owners is written again, although its pods are correct.
func (r *reporter) adopt(stored []seamarkv1alpha1.ProbeReport) {
	parts := r.slicesOf(stored)
	for i := range parts {
		if owners := ownersIn(stored, seamarkv1alpha1.SliceName(r.node, parts[i].Number)); !equality.Semantic.DeepEqual(owners, r.owners) {
			parts[i].Pods = nil
		}
	}
	r.record = r.record.Adopt(parts)
	r.wakeBy(time.Now())
}

// slicesOf returns the slices whose names the agent would use. It ignores others.
func (r *reporter) slicesOf(stored []seamarkv1alpha1.ProbeReport) []report.Slice {
	var parts []report.Slice
	for i := range stored {
		number, valid := seamarkv1alpha1.SliceNumber(r.node, stored[i].Name)
		if !valid || !stored[i].DeletionTimestamp.IsZero() {
			continue
		}
		parts = append(parts, report.Slice{Number: number, Pods: stored[i].Pods})
	}
	return parts
}

func ownersIn(stored []seamarkv1alpha1.ProbeReport, name string) []metav1.OwnerReference {
	for i := range stored {
		if stored[i].Name == name {
			return stored[i].OwnerReferences
		}
	}
	return nil
}

// Restore returns the reported states of an object's planned probes, which the agent starts
// from. It must not be called before listed is closed.
func (r *reporter) Restore(object *v1alpha1.NodePodProbe) report.States {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.record, r.read = report.Read(r.slicesOf(r.stored), openKruiseStates(object.Status)), true
		r.announcer = report.NewAnnouncer(time.Now(), r.record)
		r.owners = ownersOf(object)
		r.adopt(r.stored)
		r.stored = nil
		schedule(r.wake, &r.listAt, time.Now().Add(confirmDelay+r.jitter(confirmDelay)))
	}
	return report.Restore(planOf(object), r.record)
}

// openKruiseStates returns the states that the daemon of OpenKruise has reported in the status. They are
// nil if the slices contain the states.
func openKruiseStates(status v1alpha1.NodePodProbeStatus) []v1alpha1.PodProbeStatus {
	if status.ProbeReports {
		return nil
	}
	return status.PodProbeStatuses
}

// own records the owners of the slices. If they change, because the Node was recreated, the
// slices are listed and written again.
func (r *reporter) own(object *v1alpha1.NodePodProbe) {
	owners := ownersOf(object)
	if equality.Semantic.DeepEqual(owners, r.owners) {
		return
	}
	r.owners = owners
	if r.read {
		schedule(r.wake, &r.listAt, time.Now())
	}
}

// ownersOf returns the Node that owns the object. It is nil if none does.
func ownersOf(object *v1alpha1.NodePodProbe) []metav1.OwnerReference {
	for _, owner := range object.OwnerReferences {
		if owner.Kind == "Node" && owner.APIVersion == "v1" {
			return []metav1.OwnerReference{{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}}
		}
	}
	return nil
}

// restoreOnRequest lists the slices again if the manager requests it, because they were
// deleted or changed.
func (r *reporter) restoreOnRequest() {
	if r.observed == nil {
		return
	}
	request := r.observed.Annotations[v1alpha1.RestoreReportsAnnotationKey]
	if request == r.request {
		return
	}
	r.request = request
	if request != "" && r.read {
		r.log.Info("Received request to restore reports", "request", request)
		schedule(r.wake, &r.listAt, time.Now())
	}
}
