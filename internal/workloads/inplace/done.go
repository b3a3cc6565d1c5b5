// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/imagename"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Done reports whether the last update of the pod is done: its containers have been started with the
// new images and have the new resources. It is true for a pod that was never updated in place, and
// false if the annotation cannot be read.
func Done(pod *corev1.Pod) bool {
	state, err := readState(pod)
	_, waiting := pod.Annotations[pub.InPlaceUpdateGraceKey]
	return err == nil && !waiting && (state == nil || done(pod, state))
}

func done(pod *corev1.Pod, state *pub.InPlaceUpdateState) bool {
	if remaining(state) != nil || lagging(pod) {
		return false
	}
	return resizeAgain(pod, state) == nil && len(unfinished(pod, state)) == 0 && (!state.UpdateResources || allResized(pod))
}

// batchStarted reports whether the containers that have been changed so far run. A resize for which
// the node has no room yet does not delay the next batch, which may free resources.
func batchStarted(pod *corev1.Pod, state *pub.InPlaceUpdateState) bool {
	if len(unstarted(pod, state)) > 0 {
		return false
	}
	deferred := isTrue(pod, corev1.PodResizePending) &&
		planning.Condition(pod, corev1.PodResizePending).Reason == corev1.PodReasonDeferred
	return !state.UpdateResources || deferred || allResized(pod)
}

// allResized reports whether all containers run with the resources of their specs.
func allResized(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		if !resized(pod, spec, containerStatus(pod, spec.Name)) {
			return false
		}
	}
	return true
}

// lagging reports whether the status of a pod that is being updated describes an older spec.
func lagging(pod *corev1.Pod) bool {
	return !isTrue(pod, pub.InPlaceUpdateReady) && unseen(pod)
}

// unseen reports whether the kubelet has not seen the spec of the pod. Kubelets before Kubernetes 1.33
// do not report what they have seen.
func unseen(pod *corev1.Pod) bool {
	observed := pod.Status.ObservedGeneration
	return observed != 0 && observed < pod.Generation
}

// started reports whether the container has been started with the image of its spec, given what it
// was before the change.
//
// The image ID alone does not show it: two tags can have the same ID. Nor does the image in the
// status: runtimes report any name of the ID. The kubelet replaces a container whose image changes,
// so the container ID does.
func started(
	pod *corev1.Pod, spec *corev1.Container, before pub.InPlaceUpdateContainerStatus, changed time.Time,
) bool {
	status := containerStatus(pod, spec.Name)
	if status == nil {
		return false
	}
	// The image of the container before the change was restored before it was replaced.
	if before.Image != "" && before.Image == spec.Image && status.ContainerID == before.ContainerID {
		return status.State.Running != nil
	}
	// OpenKruise records only the image ID.
	unknown := before.ContainerID == "" && before.ImageID != ""
	replaced := !unknown && status.ContainerID != "" && status.ContainerID != before.ContainerID
	switch {
	case slices.ContainsFunc(before.Superseded, func(s string) bool { return sameImage(s, status.Image) }):
		return (replaced || unknown) && !startTime(status).Before(changed.Truncate(time.Second))
	case unknown:
		return status.ImageID != before.ImageID || !startTime(status).Before(changed.Truncate(time.Second))
	default:
		// A container that crashes before the kubelet sees the change is started from the old image.
		return replaced && (status.ImageID != before.ImageID || sameImage(spec.Image, status.Image))
	}
}

// converged reports whether all containers seem to run the images of their specs, and from when on they
// count as updated. It removes those that are not known to be replaced from a copy of the state. Only
// time shows whether the kubelet is going to replace them if a runtime reports the old name for a new
// tag of the same image, or if a container restarted at the moment of the change, so that it was
// recorded with an image that it never had.
func converged(pod *corev1.Pod, state *pub.InPlaceUpdateState) (*pub.InPlaceUpdateState, time.Time, bool) {
	left, changed := unstarted(pod, state), since(state)
	if len(left) == 0 || unseen(pod) {
		return nil, time.Time{}, false
	}
	finished, at := *state, time.Time{}
	finished.LastContainerStatuses = maps.Clone(state.LastContainerStatuses)
	for name, before := range left {
		status := containerStatus(pod, name)
		if status == nil || status.State.Running == nil {
			return nil, time.Time{}, false
		}
		alias := before.ContainerID != status.ContainerID && before.ImageID == status.ImageID
		if !alias && !sameImage(container(pod, name).Image, status.Image) {
			return nil, time.Time{}, false
		}
		start := startTime(status)
		replaced := alias && !start.Before(changed.Truncate(time.Second))
		until := changed.Add(convergenceTime)
		switch {
		case !replaced: // The kubelet may be stopping it.
			until = until.Add(time.Duration(ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)) * time.Second)
		case pod.Status.ObservedGeneration != 0 && start.Add(restartTime).Before(until):
			until = start.Add(restartTime)
		}
		if until.After(at) {
			at = until
		}
		delete(finished.LastContainerStatuses, name)
	}
	return &finished, at, true
}

// startTime returns when the container was started, the zero time if it was not.
func startTime(status *corev1.ContainerStatus) time.Time {
	switch {
	case status.State.Running != nil:
		return status.State.Running.StartedAt.Time
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time
	case status.LastTerminationState.Terminated != nil:
		return status.LastTerminationState.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// sameImage reports whether two names refer to the same image of a registry.
func sameImage(a, b string) bool { return imagename.Canonical(a) == imagename.Canonical(b) }
