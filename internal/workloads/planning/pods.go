// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
// time it will have been. The time is zero if the pod is not ready.
func Available(pod *corev1.Pod, minReady time.Duration, now time.Time) (bool, time.Duration) {
	if !Ready(pod) {
		return false, 0
	}
	left := Condition(pod, corev1.PodReady).LastTransitionTime.Add(minReady).Sub(now)
	return minReady == 0 || left <= 0, max(left, 0)
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
