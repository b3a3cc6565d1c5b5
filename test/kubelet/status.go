// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status returns what changes in the status of a pod that is bound to a node, nil if nothing does.
func (k *Kubelet) status(pod *corev1.Pod) map[string]any {
	statuses, changed := containerStatuses(pod.Spec.Containers, pod.Status.ContainerStatuses)
	inits, changedInits := containerStatuses(pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	changed = changed || changedInits
	containers := corev1.ConditionFalse
	if k.options.Ready == nil || k.options.Ready(pod) {
		containers = corev1.ConditionTrue
	}
	ready := containers
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionStatus(pod, gate.ConditionType) != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	wanted := map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodInitialized: corev1.ConditionTrue, corev1.ContainersReady: containers, corev1.PodReady: ready,
	}
	var conditions []corev1.PodCondition
	for kind, status := range wanted {
		if conditionStatus(pod, kind) != status {
			conditions = append(conditions, corev1.PodCondition{
				Type: kind, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
			})
		}
	}
	if !changed && len(conditions) == 0 && pod.Status.Phase == corev1.PodRunning {
		return nil
	}
	status := map[string]any{"phase": corev1.PodRunning, "containerStatuses": statuses}
	if len(inits) > 0 {
		status["initContainerStatuses"] = inits
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
}

// containerStatuses returns the statuses of the containers, and whether they change. The ID of an
// image is derived from its name. All init containers are native sidecars.
func containerStatuses(containers []corev1.Container, before []corev1.ContainerStatus) (statuses []corev1.ContainerStatus, changed bool) {
	for _, container := range containers {
		at := slices.IndexFunc(before, func(s corev1.ContainerStatus) bool { return s.Name == container.Name })
		if at >= 0 && before[at].Image == container.Image {
			statuses = append(statuses, before[at])
			continue
		}
		restarts := int32(0)
		if at >= 0 {
			restarts = before[at].RestartCount + 1
		}
		changed = true
		statuses = append(statuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: "id-of-" + container.Image, Ready: true, Started: new(true),
			RestartCount: restarts,
			State:        corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
	}
	return statuses, changed
}

func conditionStatus(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}
