// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Eligible tells whether the pod may be probed: it is bound to a node, active, and its
// init containers are done.
func Eligible(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !Ending(pod) && initialized(pod)
}

// Ending tells whether the pod is terminating or has ended. An ending pod leaves the
// plan and keeps the marks that it has.
func Ending(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil ||
		pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed
}

// SamePlan tells whether the two versions of one pod give the same plan under the
// markers, which are asked for only where labels differ. Containers are not compared:
// those that count can't change while a pod lives.
func SamePlan(before, after *corev1.Pod, markers func() []*Marker) bool {
	if before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		before.Status.PodIP != after.Status.PodIP || Eligible(before) != Eligible(after) {
		return false
	}
	if maps.Equal(before.Labels, after.Labels) {
		return true
	}
	for _, m := range markers() {
		if m.Selects(before) != m.Selects(after) {
			return false
		}
	}
	return true
}

func initialized(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodInitialized {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// container finds a container that runs beside the others for the pod's whole life:
// one of the containers or of the restartable init containers.
func container(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name && Restartable(c) {
			return c
		}
	}
	return nil
}

// Restartable tells whether an init container is a sidecar: one that keeps running
// beside the pod's containers.
func Restartable(initContainer *corev1.Container) bool {
	return initContainer.RestartPolicy != nil &&
		*initContainer.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
