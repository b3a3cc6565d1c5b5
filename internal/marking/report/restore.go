// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// MaxCopyBytes is the budget of Copy in encoded bytes: etcd stores it together with the plan
// (see plan.MaxBytes).
const MaxCopyBytes = 624 << 10

// Restore returns the reported states of the planned probes. An agent starts from them.
func Restore(plan Plan, ledger Ledger) States {
	states := States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		reported := ledger.pods[pod.UID]
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			key, err := probeid.KeyOf(pod, planned)
			if err != nil {
				continue
			}
			problem := reported.error(planned.Name)
			state := streak.State{Problem: streak.Problem{Reason: problem.Reason, Message: problem.Message}}
			if entry, _ := reported.of(reported.find(planned.Name, j), planned.Plan); isState(entry.State) {
				state.State, state.Message, state.ContainerID = entry.State, entry.Message, entry.ContainerID
				state.LastProbe, state.LastTransition = entry.LastProbeTime.Time, entry.LastTransitionTime.Time
			}
			if state != (streak.State{}) {
				states[key] = state
			}
		}
	}
	return states
}

func isState(s v1alpha1.ProbeState) bool {
	return s == v1alpha1.ProbeSucceeded || s == v1alpha1.ProbeFailed || s == v1alpha1.ProbeUnknown
}

// Copy returns the reported states and errors of the planned pods, in the order of the plan,
// for NodePodProbe.status. If they exceed MaxCopyBytes, errors are left out and messages are
// shortened: the pods have equal shares of what the states leave. The states are always copied: they
// can be stored together with the plan (see plan.Fit).
func (l Ledger) Copy(plan Plan) []v1alpha1.PodProbeStatus {
	var copied []v1alpha1.PodProbeStatus
	free, texts := MaxCopyBytes-restBytes, 0
	for i := range plan.Pods {
		pod, reported := &plan.Pods[i], l.pods[plan.Pods[i].UID]
		status := v1alpha1.PodProbeStatus{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID}
		free -= podBytes + len(pod.Name) + len(pod.Namespace) + len(pod.UID)
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			if entry, found := reported.of(reported.find(planned.Name, j), planned.Plan); found {
				status.ProbeStates = append(status.ProbeStates, entry)
				free -= stateBytes + len(entry.Name) + len(entry.Plan) + len(entry.ContainerID)
				texts += encodedBytes(entry.Message)
			}
			if e := reported.error(planned.Name); e.Reason != "" {
				status.ProbeErrors = append(status.ProbeErrors, e)
				texts += encodedError(e)
			}
		}
		if len(status.ProbeStates)+len(status.ProbeErrors) > 0 {
			copied = append(copied, status)
		}
	}
	if texts <= free {
		return copied
	}
	for i := range copied {
		pod := &copied[i]
		pod.ProbeErrors = nil
		limit := max(free, 0) / len(copied) / max(len(pod.ProbeStates), 1)
		for j := range pod.ProbeStates {
			pod.ProbeStates[j].Message = shorten(pod.ProbeStates[j].Message, limit)
		}
	}
	return copied
}
