// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Condition returns the condition of the pod with the type, nil if it has none.
func Condition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == conditionType {
			return c
		}
	}
	return nil
}

// Ready reports whether the pod has the condition Ready.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Available reports whether the pod has been ready for at least minReady, and otherwise in how much
// time it will have been, at most minReady: the clock of the kubelet may be ahead of this one, and this
// one may be corrected meanwhile. The time is zero if the pod is not ready.
func Available(pod *corev1.Pod, minReady time.Duration, now time.Time) (bool, time.Duration) {
	if !Ready(pod) {
		return false, 0
	}
	left := min(Condition(pod, corev1.PodReady).LastTransitionTime.Add(minReady).Sub(now), minReady)
	return left <= 0, max(left, 0)
}

// Terminating reports whether the deletion of the pod has been requested.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// Finished reports whether the pod has ended: it does not run again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Active reports whether the pod runs or will run.
func Active(pod *corev1.Pod) bool { return !Terminating(pod) && !Finished(pod) }

// Leaves reports whether the claim is being deleted, or is deleted with a pod. A pod that does not exist
// yet must not use it.
func Leaves(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp != nil || OwnerPod(claim) != nil
}

// OwnerPod returns the reference to the pod that owns the claim, nil if none does.
func OwnerPod(claim *corev1.PersistentVolumeClaim) *metav1.OwnerReference {
	for i := range claim.OwnerReferences {
		if owner := &claim.OwnerReferences[i]; owner.APIVersion == "v1" && owner.Kind == "Pod" {
			return owner
		}
	}
	return nil
}

const (
	// OverdueBound is the time after the grace period of a terminating pod from which on it is overdue.
	OverdueBound = 5 * time.Minute
	// DeletionOverdue is the type of the condition that is True while new pods wait for the names or the
	// claims of pods that are overdue. It is the reason of the event about it, too.
	DeletionOverdue = "DeletionOverdue"
	// StillTerminating is the reason of the condition.
	StillTerminating = "PodsStillTerminating"
)

// Overdue returns a message about the pods that are overdue and their nodes, empty if there are none, and the time
// until the next terminating pod is overdue, zero if there is none.
func Overdue(pods []*corev1.Pod, now time.Time) (string, time.Duration) {
	var names []string
	var next time.Duration
	for _, pod := range pods {
		if !Terminating(pod) {
			continue
		}
		// The deletion timestamp is the end of the grace period.
		left := pod.DeletionTimestamp.Add(OverdueBound).Sub(now)
		switch {
		case left <= 0:
			name := pod.Name
			if node := pod.Spec.NodeName; node != "" {
				name += " on node " + node
			}
			names = append(names, name)
		case next == 0 || left < next:
			next = left
		}
	}
	if len(names) == 0 {
		return "", next
	}
	slices.Sort(names)
	return fmt.Sprintf("Pods are still terminating %d minutes after their grace period, and new pods wait for "+
		"their names or claims: %s. If their node is lost, delete its Node object or add the taint %s.",
		OverdueBound/time.Minute, text.List(names, text.MaxNames), corev1.TaintNodeOutOfService), next
}

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
	merged.Stop = p.Stop || other.Stop
	return &merged
}

func union[V any](a, b map[string]V) map[string]V {
	if len(a) == 0 {
		return b
	}
	merged := maps.Clone(a)
	maps.Copy(merged, b)
	return merged
}

// StartBound is for how long a pod of the update revision that is not available delays the update of other pods that are not
// available. After it, they go on: the members of a quorum become available only together, and a lost node does not return.
const StartBound = 5 * time.Minute

// Starting returns for how long the pod still delays others, at most zero if it does not any more: until StartBound after it
// was created, was updated in place, or was to be gone, whichever is the latest. Its readiness may change many times meanwhile.
func Starting(pod *corev1.Pod, now time.Time) time.Duration {
	at := pod.CreationTimestamp.Time
	if gate := Condition(pod, pub.InPlaceUpdateReady); gate != nil && gate.LastTransitionTime.After(at) {
		at = gate.LastTransitionTime.Time
	}
	if pod.DeletionTimestamp != nil && pod.DeletionTimestamp.After(at) {
		at = pod.DeletionTimestamp.Time
	}
	return at.Add(StartBound).Sub(now)
}
