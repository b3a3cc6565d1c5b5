// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// State returns the state that was reported for the probe. It returns false if there is none:
// a state of an earlier marker with the same name is not a state of the probe.
func (r PodReport) State(probe plan.PlannedProbe) (v1alpha1.ContainerProbeState, bool) {
	state, known := r.States[probe.ID]
	if !known || !probeid.SamePlan(probe.Plan.Plan, state.Plan) {
		return v1alpha1.ContainerProbeState{}, false
	}
	return state, true
}

// ReportOf returns the part of a node's report that is about the pod with the UID. It omits
// states whose name is not that of a probe.
func ReportOf(npp *v1alpha1.NodePodProbe, pod types.UID) PodReport {
	report := PodReport{Reported: Reported(npp)}
	for i := range npp.Status.PodProbeStatuses {
		status := &npp.Status.PodProbeStatuses[i]
		if status.UID != string(pod) {
			continue
		}
		report.States = make(States, len(status.ProbeStates))
		for _, state := range status.ProbeStates {
			if id, err := probeid.Parse(state.Name); err == nil {
				report.States[id] = state
			}
		}
	}
	return report
}

// Reported reports whether the node's agent has reported since the object was created.
func Reported(npp *v1alpha1.NodePodProbe) bool {
	return npp.Status.ObservedGeneration > 0 || len(npp.Status.PodProbeStatuses) > 0
}

// Changed returns the pods whose states differ between two reports of one node, each once.
func Changed(before, after *v1alpha1.NodePodProbe) []types.NamespacedName {
	old := make(map[string]*v1alpha1.PodProbeStatus, len(before.Status.PodProbeStatuses))
	for i := range before.Status.PodProbeStatuses {
		status := &before.Status.PodProbeStatuses[i]
		old[status.UID] = status
	}
	var changed []types.NamespacedName
	seen := make(map[types.NamespacedName]bool)
	add := func(status *v1alpha1.PodProbeStatus) {
		pod := types.NamespacedName{Namespace: status.Namespace, Name: status.Name}
		if !seen[pod] {
			seen[pod] = true
			changed = append(changed, pod)
		}
	}
	for i := range after.Status.PodProbeStatuses {
		status := &after.Status.PodProbeStatuses[i]
		previous, known := old[status.UID]
		if !known || !equality.Semantic.DeepEqual(previous.ProbeStates, status.ProbeStates) {
			add(status)
		}
		delete(old, status.UID)
	}
	for i := range before.Status.PodProbeStatuses {
		if status := &before.Status.PodProbeStatuses[i]; old[status.UID] != nil {
			add(status)
		}
	}
	return changed
}
