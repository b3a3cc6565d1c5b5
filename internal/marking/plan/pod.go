// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Obstacle is why a pod may not be probed.
type Obstacle string

// The obstacles, in the order in which ObstacleOf looks for them.
const (
	// Terminating means that the pod is being deleted.
	Terminating Obstacle = "Terminating"
	// Ended means that the pod has succeeded or failed.
	Ended Obstacle = "Ended"
	// NotBound means that the pod is not bound to a node.
	NotBound Obstacle = "NotBound"
	// NotInitialized means that the init containers have not completed and no container has run.
	NotInitialized Obstacle = "NotInitialized"
)

// ObstacleOf returns the first reason why the pod may not be probed, or an empty Obstacle if it may.
// Init containers run again when the node reboots or the sandbox is replaced; the pod stays in the
// plan meanwhile, so that its marks follow its containers as those of a pod without init containers
// do.
func ObstacleOf(pod *corev1.Pod) Obstacle {
	switch {
	case pod.DeletionTimestamp != nil:
		return Terminating
	case Ending(pod):
		return Ended
	case pod.Spec.NodeName == "":
		return NotBound
	case !Initialized(pod) && !HasRun(pod):
		return NotInitialized
	default:
		return ""
	}
}

// Eligible reports whether the pod may be probed: it is bound to a node, it is not ending, and
// its init containers have completed once.
func Eligible(pod *corev1.Pod) bool { return ObstacleOf(pod) == "" }

// Ending reports whether the pod is terminating or has ended. An ending pod is removed from
// the plan and keeps its marks.
func Ending(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil ||
		pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed
}

// SamePlan reports whether both versions of a pod have the same plan. It calls markers only if
// the labels differ. Markers that are being deleted count like others: one of them may have
// selected the pod until now. SamePlan does not compare containers, because those that matter
// are immutable.
func SamePlan(before, after *corev1.Pod, markers func() []*Marker) bool {
	if before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		before.Status.PodIP != after.Status.PodIP || addressable(before) != addressable(after) ||
		Eligible(before) != Eligible(after) || RuntimeUID(before) != RuntimeUID(after) {
		return false
	}
	if maps.Equal(before.Labels, after.Labels) {
		return true
	}
	for _, m := range markers() {
		if m.Matches(before) != m.Matches(after) {
			return false
		}
	}
	return true
}

// addressable reports whether the pod may be planned for network probes: it has an address, or it
// had one. A pod whose containers ran loses its address when the node reboots, and its marks
// depend on the plan.
func addressable(pod *corev1.Pod) bool { return pod.Status.PodIP != "" || HasRun(pod) }

// HasRun reports whether one of the pod's containers is running or has run. Init containers and
// sidecars do not count: they run before the pod is initialized for the first time.
func HasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		// The kubelet drops the ID if the runtime no longer has the container.
		return c.ContainerID != "" || c.RestartCount > 0 || c.LastTerminationState.Terminated != nil
	})
}

// hashAnnotation is the annotation of a mirror pod that contains the UID of the static pod.
const hashAnnotation = "kubernetes.io/config.hash"

// RuntimeUID returns the UID that the container runtime knows the pod by if the pod is the
// mirror pod of a static pod, and otherwise an empty string. Any user who can create pods can
// set the annotations, so the agent also compares namespace and name with those in the runtime.
func RuntimeUID(pod *corev1.Pod) string {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return ""
	}
	return pod.Annotations[hashAnnotation]
}

// RuntimeAnnotations returns the keys of the annotations that RuntimeUID reads.
func RuntimeAnnotations() []string { return []string{corev1.MirrorPodAnnotationKey, hashAnnotation} }

// Initialized reports whether the init containers of the pod have completed.
func Initialized(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodInitialized {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// container returns the container or restartable init container with the name, or nil. Other
// init containers do not run when the pod is probed.
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

// HasContainer reports whether the pod has the container or the sidecar, so that a probe can run in it.
func HasContainer(pod *corev1.Pod, name string) bool { return container(pod, name) != nil }

// Restartable reports whether the init container is a sidecar, which keeps running next to the
// pod's containers.
func Restartable(initContainer *corev1.Container) bool {
	return initContainer.RestartPolicy != nil &&
		*initContainer.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
