// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package order sorts the pods of a set: which pod is deleted first when a set is scaled in, and
// which pod is updated first. Both orders are total: the last criterion is the name of the pod, so
// that they do not depend on the order of the input. The functions return new slices.
package order

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// key contains what the orders compare of a pod, computed once per pod.
type key struct {
	pod       *corev1.Pod
	assigned  bool
	phase     int
	available bool
	ready     bool
	cost      int32
	rank      float64
	readyAt   time.Time
	restarts  int32
	pinned    bool
	priority  Priority
}

// phase returns the position of the phase in the order Pending, Unknown, Running.
func phase(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// keys returns the keys of the pods, without what only one of the orders compares.
func keys(pods []*corev1.Pod, available func(*corev1.Pod) bool) []key {
	result := make([]key, len(pods))
	for i, pod := range pods {
		k := key{
			pod: pod, assigned: pod.Spec.NodeName != "", phase: phase(pod), cost: DeletionCost(pod),
			ready: planning.Ready(pod),
		}
		if k.ready {
			k.readyAt = planning.Condition(pod, corev1.PodReady).LastTransitionTime.Time
		}
		k.available = k.ready && (available == nil || available(pod))
		for j := range pod.Status.ContainerStatuses {
			k.restarts = max(k.restarts, pod.Status.ContainerStatuses[j].RestartCount)
		}
		result[i] = k
	}
	return result
}

// DeletionCost returns the value of the annotation controller.kubernetes.io/pod-deletion-cost, zero
// if it is absent or not a canonical int32, as for the built-in ReplicaSet.
func DeletionCost(pod *corev1.Pod) int32 {
	cost, _ := ParseDeletionCost(pod.Annotations[corev1.PodDeletionCost])
	return cost
}

// ParseDeletionCost returns a value of the annotation as a number. It reports false for a value that
// the API server refuses: all but canonical decimal numbers from -2147483648 to 2147483647.
func ParseDeletionCost(value string) (int32, bool) {
	cost, err := strconv.ParseInt(value, 10, 32)
	if err != nil || value[0] == '+' || len(value) > 1 && value[0] == '0' {
		return 0, false
	}
	return int32(cost), true
}

// falseFirst compares two values of a criterion that sorts false before true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// laterFirst compares two times: the later one first, and the zero time, which is not known yet,
// before all others.
func laterFirst(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return falseFirst(!a.IsZero(), !b.IsZero())
	}
	return b.Compare(a)
}

// progress compares how far the pods have come: unassigned, pending, not ready.
func progress(a, b *key) int {
	return cmp.Or(
		falseFirst(a.assigned, b.assigned),
		cmp.Compare(a.phase, b.phase),
		falseFirst(a.ready, b.ready),
	)
}

// age compares what distinguishes pods that are otherwise equal: the pod that is ready for less
// time, has more restarts, or is newer comes first. The name decides at last.
func age(a, b *key) int {
	return cmp.Or(
		laterFirst(a.readyAt, b.readyAt),
		cmp.Compare(b.restarts, a.restarts),
		laterFirst(a.pod.CreationTimestamp.Time, b.pod.CreationTimestamp.Time),
		cmp.Compare(a.pod.Name, b.pod.Name),
	)
}
