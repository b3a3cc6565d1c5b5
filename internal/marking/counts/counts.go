// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counts counts the pods of a marker by the states of its probes, for the status of the marker.
// It is pure.
package counts

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// maxErrors is the maximum number of errors in a status.
const maxErrors = 10

// Counts counts the states of the probes of one marker.
type Counts struct {
	// Marker is the marker whose probes are counted.
	Marker *plan.Marker

	probes []plan.PlannedProbe
	counts []v1alpha1.ProbeCounts
	errors []v1alpha1.PodError
}

// New returns the Counts of the marker without pods.
func New(marker *plan.Marker) *Counts {
	t := &Counts{Marker: marker, probes: marker.Probes()}
	for _, probe := range t.probes {
		t.counts = append(t.counts, v1alpha1.ProbeCounts{Name: probe.ID.Probe})
	}
	return t
}

// Pod is a pod whose states are counted.
type Pod struct {
	// Object is the pod.
	Object *corev1.Pod
	// Outage is since when its states are not current.
	Outage staleness.Outage
	// Owned are Seamark's marks on the pod, and Claims the probes that its keys belong to: they say which states are stale already.
	// They matter only while the states are not current.
	Owned  mark.Marks
	Claims mark.Claims
	// Held are the probes for whose exclusive marks the pod may not have those of its state.
	Held map[identity.ID]mark.Hold
}

// Add counts the state of a probe of the marker in a pod. A state of an earlier marker with the same name, or of a container that the
// pod does not have, does not count. A stale state counts as Unknown, and so does one whose exclusive marks another pod has.
func (t *Counts) Add(pod Pod, id identity.ID, state v1alpha1.ContainerProbeState) {
	i := t.index(id)
	if i < 0 || !plan.HasContainer(pod.Object, t.probes[i].Source.ContainerName) {
		return
	}
	if counted, stale, known := (mark.PodReport{Outage: pod.Outage, Held: pod.Held}).Counted(t.probes[i], state, pod.Claims, pod.Owned); known {
		t.counts[i] = increment(t.counts[i], counted, stale)
	}
}

// AddError collects why a probe of the marker has no result in a pod, for the first pods by name.
func (t *Counts) AddError(pod string, id identity.ID, e v1alpha1.ContainerProbeError) {
	if t.index(id) >= 0 {
		e = mark.Sanitize(e)
		t.errors = append(t.errors, v1alpha1.PodError{Pod: pod, Probe: id.Probe, Reason: e.Reason, Message: e.Message})
		slices.SortFunc(t.errors, func(a, b v1alpha1.PodError) int {
			return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Probe, b.Probe))
		})
		t.errors = t.errors[:min(len(t.errors), maxErrors)]
	}
}

// BecomesStale reports whether states of the probe become stale.
func (t *Counts) BecomesStale(id identity.ID) bool {
	i := t.index(id)
	return i >= 0 && t.probes[i].Source.StaleAfterSeconds != nil
}

// Contends reports whether the pod has the state of an exclusive policy of the probe and not the ticket of its group.
func (t *Counts) Contends(pod *corev1.Pod, id identity.ID, state v1alpha1.ProbeState) bool {
	return slices.ContainsFunc(t.Marker.Exclusives(), func(e plan.Exclusive) bool {
		ticket, has := pod.Labels[e.Ticket]
		return e.ID == id && e.Policy.State == state && (!has || !e.IsIn(pod, ticket))
	})
}

// index returns the number of the probe, or -1 if it is not one of the marker.
func (t *Counts) index(id identity.ID) int {
	return slices.IndexFunc(t.probes, func(p plan.PlannedProbe) bool { return p.ID == id })
}

func increment(counts v1alpha1.ProbeCounts, state v1alpha1.ContainerProbeState, stale bool) v1alpha1.ProbeCounts {
	switch state.State {
	case v1alpha1.ProbeSucceeded:
		counts.Succeeded++
	case v1alpha1.ProbeFailed:
		counts.Failed++
	case v1alpha1.ProbeUnknown:
		counts.Unknown++
	default:
		return counts
	}
	if stale {
		counts.Stale++
	}
	if at := state.LastTransitionTime; !at.IsZero() && (counts.LastTransitionTime == nil || at.After(counts.LastTransitionTime.Time)) {
		// The API server stores seconds.
		counts.LastTransitionTime = new(metav1.NewTime(at.UTC().Truncate(1e9)))
	}
	return counts
}

// Fill sets the counts and the errors in the status, which has the number of matched pods.
func (t *Counts) Fill(status *v1alpha1.PodProbeMarkerStatus) {
	status.Probes = slices.Clone(t.counts)
	for i := range status.Probes {
		p := &status.Probes[i]
		p.NotRunning = max(0, status.MatchedPods-p.Succeeded-p.Failed-p.Unknown)
		status.Succeeded += p.Succeeded
		status.Failed += p.Failed
		status.Unknown += p.Unknown
	}
	status.PodErrors = slices.Clone(t.errors)
}
