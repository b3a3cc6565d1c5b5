// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Provided returns what the provider of a virtual kubelet says of the pod by the
// conditions that the probes name: True is Succeeded, False is Failed, anything else
// Unknown. The conditions are the provider's own and no marks. But one that an agent's
// report has set, while the pod's node had a kubelet, stays until the provider sets it.
// It returns an error where the pod's managedFields can't be read.
func Provided(pod *corev1.Pod, probes []plan.Probe) (Report, error) {
	kept, err := keptConditions(pod)
	if err != nil {
		return Report{}, err
	}
	report := Report{Reported: true, Provider: true, Kept: kept, States: make(States, len(probes))}
	for _, probe := range probes {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; string(c.Type) == probe.Source.PodConditionType {
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
	return report, nil
}

func stateOf(status corev1.ConditionStatus) v1alpha1.ProbeState {
	switch status {
	case corev1.ConditionTrue:
		return v1alpha1.ProbeSucceeded
	case corev1.ConditionFalse:
		return v1alpha1.ProbeFailed
	default:
		return v1alpha1.ProbeUnknown
	}
}

// keptConditions returns the types of the conditions whose status is still the one that
// Seamark has set. Of one that somebody else has set since, Seamark owns less than that.
func keptConditions(pod *corev1.Pod) (map[string]bool, error) {
	entry := Entry(pod.ManagedFields)
	if entry == nil || entry.FieldsV1 == nil {
		return nil, nil
	}
	set, err := fieldsOf(entry)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	kept := make(map[string]bool)
	for field, inner := range set.Status.Conditions {
		conditionType, isElement, err := elementType(field)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		var leaves fields
		if !isElement || json.Unmarshal(inner, &leaves) != nil {
			continue
		}
		_, kept[conditionType] = leaves["f:status"]
	}
	return kept, nil
}
