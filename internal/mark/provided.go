// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Provided returns what the provider of a virtual kubelet says of the pod by the
// conditions that the probes name: True is Succeeded, False is Failed, anything else
// Unknown. The conditions are the provider's own and no marks. But one that an agent's
// report has set, while the pod's node had a kubelet, stays until the provider sets it,
// field by field. A condition without a status says nothing.
func Provided(pod *corev1.Pod, probes []plan.Probe) Report {
	report := Report{Reported: true, Provider: true, States: make(States, len(probes))}
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

// stateOf is conditionStatus the other way round.
func stateOf(status corev1.ConditionStatus) v1alpha1.ProbeState {
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed} {
		if conditionStatus(state) == status {
			return state
		}
	}
	return v1alpha1.ProbeUnknown
}
