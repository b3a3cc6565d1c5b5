// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasGate reports whether the pod has the readiness gate.
func HasGate(pod *corev1.Pod, gate corev1.PodConditionType) bool {
	return slices.Contains(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
}

// AddGate adds the readiness gate to the spec of a new pod, unless it has it.
func AddGate(spec *corev1.PodSpec, gate corev1.PodConditionType) {
	if g := (corev1.PodReadinessGate{ConditionType: gate}); !slices.Contains(spec.ReadinessGates, g) {
		spec.ReadinessGates = append(spec.ReadinessGates, g)
	}
}

// GateConditions returns the conditions that a pod gets with a new condition of a readiness gate: the
// condition, with the time of its transition, and Ready if it becomes False with it. The kubelet would
// set the same a moment later; until then the pod would receive traffic and count as available.
func GateConditions(pod *corev1.Pod, gate corev1.PodCondition, now time.Time) []corev1.PodCondition {
	gate.LastTransitionTime = metav1.NewTime(now)
	if old := Condition(pod, gate.Type); old != nil && old.Status == gate.Status {
		gate.LastTransitionTime = old.LastTransitionTime
	}
	conditions := []corev1.PodCondition{gate}
	if gate.Status != corev1.ConditionTrue && Ready(pod) {
		conditions = append(conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now),
			Reason: "ReadinessGatesNotReady",
			Message: fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v",
				string(gate.Type), gate.Status),
		})
	}
	return conditions
}

// Merge returns one patch with the changes of both, which are of the same pod. Either may be nil. If
// both change the same key, condition or image, other takes effect.
func (p *PodPatch) Merge(other *PodPatch) *PodPatch {
	if p == nil || other == nil {
		if p == nil {
			return other
		}
		return p
	}
	merged := *p
	merged.Conditions = slices.Clone(p.Conditions)
	for _, c := range other.Conditions {
		i := slices.IndexFunc(merged.Conditions, func(m corev1.PodCondition) bool { return m.Type == c.Type })
		if i < 0 {
			merged.Conditions = append(merged.Conditions, c)
		} else {
			merged.Conditions[i] = c
		}
	}
	merged.Labels = union(p.Labels, other.Labels)
	merged.Annotations = union(p.Annotations, other.Annotations)
	merged.Images = union(p.Images, other.Images)
	merged.Resources = union(p.Resources, other.Resources)
	if other.Controller != KeepController {
		merged.Controller = other.Controller
	}
	return &merged
}

func union[V any](a, b map[string]V) map[string]V {
	if len(a) == 0 {
		return b
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
