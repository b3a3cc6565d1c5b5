// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Transform returns a transform of a cache that trims the objects of one type. It passes all
// others unchanged, such as the tombstones of deleted objects.
func Transform[T any](trim func(T) T) func(any) (any, error) {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			return trim(typed), nil
		}
		return object, nil
	}
}

// TrimPod returns a pod with only the fields that views are built from, and those that
// identify the pod. Slices and maps may be shared with the original.
func (o Options) TrimPod(pod *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            pod.Labels,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			ManagedFields:     mark.Entries(pod.ManagedFields),
		},
		Spec: corev1.PodSpec{
			NodeName:   pod.Spec.NodeName,
			Containers: make([]corev1.Container, 0, len(pod.Spec.Containers)),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
	for i := range pod.Spec.Containers {
		trimmed.Spec.Containers = append(trimmed.Spec.Containers, trimContainer(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; plan.Restartable(c) {
			trimmed.Spec.InitContainers = append(trimmed.Spec.InitContainers, trimContainer(c))
		}
	}
	if plan.HasRun(pod) && (pod.Status.PodIP == "" || !plan.Initialized(pod)) {
		trimmed.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	}
	o.trimMarks(trimmed, pod)
	return trimmed
}

func trimContainer(c *corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
}

// trimMarks keeps the annotations and conditions that are marks, those that identify a static
// pod, the keys of all other annotations, because a marker may declare them, and the condition
// Initialized. If providers probe pods, it also keeps the annotations for providers and all
// conditions that a provider may write.
func (o Options) trimMarks(trimmed, pod *corev1.Pod) {
	owned, err := mark.Owned(pod)
	if err != nil {
		// The controller that reads the marks gets the same error and reports it.
		owned = nil
	}
	if len(pod.Annotations) > 0 {
		trimmed.Annotations = make(map[string]string, len(pod.Annotations))
	}
	for name, value := range pod.Annotations {
		static := slices.Contains(plan.RuntimeAnnotations(), name)
		passed := o.Serverless && (name == v1alpha1.PodProbeMarkerAnnotationKey || name == v1alpha1.PodProbeMarkerListAnnotationKey)
		if !static && !passed && !owned.Has(mark.Annotation(name)) {
			value = ""
		}
		trimmed.Annotations[name] = value
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		provided := o.Serverless && !v1alpha1.IsNativePodCondition(c.Type)
		if c.Type == corev1.PodInitialized || provided || owned.Has(mark.ConditionType(string(c.Type))) {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, *c)
		}
	}
}

// TrimNode returns the metadata of a node with only what views are built from: its identity
// and its kind.
func TrimNode(node *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	trimmed := &metav1.PartialObjectMetadata{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			UID:             node.UID,
			ResourceVersion: node.ResourceVersion,
		},
	}
	for _, label := range serverless.AgentlessLabels() {
		if value, found := node.Labels[label.Key]; found {
			metav1.SetMetaDataLabel(&trimmed.ObjectMeta, label.Key, value)
		}
	}
	return trimmed
}

// TrimVirtualNode returns a node with only what decides whether a pod may run on it.
func TrimVirtualNode(node *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			UID:             node.UID,
			ResourceVersion: node.ResourceVersion,
			Labels:          node.Labels,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints},
	}
}
