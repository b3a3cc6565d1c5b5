// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// Provided returns what the provider of a virtual node reports about the pod through the
// conditions that the probes declare: True means Succeeded, False means Failed, any other
// status Unknown, and no status no report. These conditions belong to the provider and are
// not marks. A condition that Seamark set while the pod's node had a kubelet stays until
// the provider sets it, field by field.
func Provided(pod *corev1.Pod, probes []plan.PlannedProbe) PodReport {
	report := PodReport{Reported: true, Provider: true, States: make(States, len(probes))}
	for _, probe := range probes {
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			if string(c.Type) == probe.Source.PodConditionType && c.Status != "" {
				report.States[probe.ID] = v1alpha1.ContainerProbeState{
					Name:               probe.ID.String(),
					State:              stateOf(c.Status),
					Message:            c.Message,
					LastProbeTime:      c.LastProbeTime,
					LastTransitionTime: c.LastTransitionTime,
				}
			}
		}
	}
	return report
}

// stateOf is the inverse of conditionStatus.
func stateOf(status corev1.ConditionStatus) v1alpha1.ProbeState {
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed} {
		if conditionStatus(state) == status {
			return state
		}
	}
	return v1alpha1.ProbeUnknown
}
