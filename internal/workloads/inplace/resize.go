// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// resizable returns the resources that the subresource resize changes.
func resizable() sets.Set[corev1.ResourceName] {
	return sets.New(corev1.ResourceCPU, corev1.ResourceMemory)
}

// resize returns the resources of a container to change: those that differ in the templates, and those that a previous update
// has not written. The others stay as they are in the pod, for example because an autoscaler or a user has changed them. It
// reports a change that the API server would refuse, so that the pod is recreated at once.
func resize(name string, pending, from, to corev1.ResourceRequirements) (corev1.ResourceRequirements, string) {
	target := corev1.ResourceRequirements{Requests: pending.Requests.DeepCopy(), Limits: pending.Limits.DeepCopy()}
	if !equality.Semantic.DeepEqual(from.Claims, to.Claims) {
		return target, fmt.Sprintf("the resource claims of container %s change", name)
	}
	for _, lists := range []struct {
		from, to corev1.ResourceList
		target   *corev1.ResourceList
	}{{requests(from), requests(to), &target.Requests}, {from.Limits, to.Limits, &target.Limits}} {
		for resource := range lists.from {
			if _, ok := lists.to[resource]; !ok {
				return target, fmt.Sprintf("resource %s of container %s is removed", resource, name)
			}
		}
		for resource, quantity := range lists.to {
			if old, ok := lists.from[resource]; ok && old.Cmp(quantity) == 0 {
				continue
			}
			if !resizable().Has(resource) {
				return target, fmt.Sprintf("resource %s of container %s changes", resource, name)
			}
			if *lists.target == nil {
				*lists.target = corev1.ResourceList{}
			}
			(*lists.target)[resource] = quantity
		}
	}
	return target, ""
}

// qos reports that a batch changes the pod's QoS class, which the API server refuses.
func qos(pod *corev1.Pod, parts []*Change) string {
	resized := pod
	for _, part := range parts {
		resized = resized.DeepCopy()
		for name, wanted := range part.Resources {
			spec := container(resized, name)
			spec.Resources.Requests = merged(spec.Resources.Requests, wanted.Requests)
			spec.Resources.Limits = merged(spec.Resources.Limits, wanted.Limits)
		}
		if before, after := qosClass(pod), qosClass(resized); before != after {
			return fmt.Sprintf("the QoS class changes from %s to %s", before, after)
		}
	}
	return ""
}

// merged returns the resources with those that change.
func merged(list, changed corev1.ResourceList) corev1.ResourceList {
	resources := corev1.ResourceList{}
	maps.Copy(resources, list)
	maps.Copy(resources, changed)
	return resources
}

// requests returns the requests that the API server derives: a limit without a request is a request.
func requests(r corev1.ResourceRequirements) corev1.ResourceList {
	return merged(r.Limits, r.Requests)
}

// qosClass returns the class of the pod's resources, by the rules of Kubernetes.
func qosClass(pod *corev1.Pod) corev1.PodQOSClass {
	if r := pod.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return pod.Status.QOSClass // Resources of the pod decide, not those of containers.
	}
	guaranteed, bestEffort := true, true
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			for name := range resizable() {
				request, limit := r.Requests[name], r.Limits[name]
				if !request.IsZero() || !limit.IsZero() {
					bestEffort = false
				}
				if limit.IsZero() || !request.IsZero() && request.Cmp(limit) != 0 {
					guaranteed = false
				}
			}
		}
	}
	switch {
	case bestEffort:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	default:
		return corev1.PodQOSBurstable
	}
}

// resizes reports whether the request or the limit of the resource changes.
func resizes(spec *corev1.Container, wanted corev1.ResourceRequirements, name corev1.ResourceName) bool {
	only := func(list corev1.ResourceList) corev1.ResourceList {
		quantity, ok := list[name]
		if !ok {
			return nil
		}
		return corev1.ResourceList{name: quantity}
	}
	return !contains(spec.Resources.Requests, only(wanted.Requests)) || !contains(spec.Resources.Limits, only(wanted.Limits))
}

func applied(spec *corev1.Container, wanted corev1.ResourceRequirements) bool {
	return contains(spec.Resources.Requests, wanted.Requests) && contains(spec.Resources.Limits, wanted.Limits)
}

func contains(list, wanted corev1.ResourceList) bool {
	for name, quantity := range wanted {
		if have, ok := list[name]; !ok || have.Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}

// resized reports whether the container runs with the resources of its spec.
func resized(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus) bool {
	if isTrue(pod, corev1.PodResizePending) || isTrue(pod, corev1.PodResizeInProgress) {
		return false
	}
	if status == nil || status.Resources == nil { // Not started, or a kubelet that does not report them.
		return true
	}
	for name := range resizable() {
		for _, lists := range [][2]corev1.ResourceList{
			{spec.Resources.Requests, status.Resources.Requests}, {spec.Resources.Limits, status.Resources.Limits},
		} {
			wanted, ok := lists[0][name]
			if actual, reported := lists[1][name]; ok && reported && wanted.Cmp(actual) != 0 {
				return false
			}
		}
	}
	return true
}

// stuck returns why the resize of an update has not taken effect, and whether it never will. The text is empty if nothing
// prevents it, or if the kubelet has not seen the pod since its last change: its conditions are about an earlier resize.
func stuck(pod *corev1.Pod, state *pub.InPlaceUpdateState) (why string, never bool) {
	if !state.UpdateResources {
		return "", false
	}
	pending, progress := planning.Condition(pod, corev1.PodResizePending), planning.Condition(pod, corev1.PodResizeInProgress)
	refused := pod.Annotations[pub.ResizeRefusedKey]
	switch {
	case refused != "" && resizeAgain(pod, state) != nil:
		return "the API server refuses the resize: " + refused, true
	case unseen(pod):
		return "", false
	case isTrue(pod, corev1.PodResizePending) && pending.Reason == corev1.PodReasonInfeasible:
		return "the resize is infeasible: " + pending.Message, true
	case isTrue(pod, corev1.PodResizePending) && pending.Reason == corev1.PodReasonDeferred:
		return "the resize is deferred: " + pending.Message, false
	case isTrue(pod, corev1.PodResizeInProgress) && progress.Reason == corev1.PodReasonError:
		return "the resize fails: " + progress.Message, false
	}
	return "", false
}
