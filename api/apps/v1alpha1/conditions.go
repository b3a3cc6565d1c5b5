// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NativePodConditionTypes returns the types of the pod conditions that Kubernetes itself
// sets, sorted. They can be neither the podConditionType nor the name of a probe.
func NativePodConditionTypes() []corev1.PodConditionType {
	return []corev1.PodConditionType{
		corev1.AllContainersRestarting,
		corev1.ContainersReady,
		corev1.DisruptionTarget,
		corev1.PodInitialized,
		corev1.PodReadyToStartContainers,
		corev1.PodResizeInProgress,
		corev1.PodResizePending,
		corev1.PodScheduled,
		corev1.PodReady,
	}
}

// IsNativePodCondition reports whether Kubernetes itself sets pod conditions of the type.
func IsNativePodCondition(conditionType corev1.PodConditionType) bool {
	return slices.Contains(NativePodConditionTypes(), conditionType)
}
