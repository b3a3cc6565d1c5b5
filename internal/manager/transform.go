// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
)

// caches says what the cache keeps of each kind. Objects are handed out as they are
// kept, without a copy: no controller changes what it reads. Serverless says whether what
// providers are told, and what they say, is kept of pods.
func caches(serverless bool) cache.Options {
	shared := true
	pods := trimPod
	if serverless {
		pods = trimServerlessPod
	}
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: &shared,
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:              {Transform: typed(pods)},
			controller.NewNode():       {Transform: typed(trimNode)},
			&v1alpha1.PodProbeMarker{}: {},
			&v1alpha1.NodePodProbe{}:   {},
		},
	}
}

// typed makes a transform of a function for one type. Whatever else the cache hands
// over passes unchanged.
func typed[T any](trim func(T) T) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if object, ok := in.(T); ok {
			return trim(object), nil
		}
		return in, nil
	}
}

// trimPod keeps what plans and marks are made from. Of annotations, conditions and
// managed fields that is Seamark's own part, the condition Initialized, and which marks
// OpenKruise owns.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              pod.Name,
			Namespace:         pod.Namespace,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            pod.Labels,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Containers:     make([]corev1.Container, 0, len(pod.Spec.Containers)),
			InitContainers: nil,
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
	trimMarks(trimmed, pod)
	return trimmed
}

// trimServerlessPod keeps besides the two annotations for providers, and all conditions
// that Kubernetes doesn't set itself.
func trimServerlessPod(pod *corev1.Pod) *corev1.Pod {
	trimmed := trimPod(pod)
	annotations := maps.Clone(trimmed.Annotations)
	for _, key := range []string{v1alpha1.PodProbeMarkerAnnotationKey, v1alpha1.PodProbeMarkerListAnnotationKey} {
		if value, found := pod.Annotations[key]; found {
			if annotations == nil {
				annotations = make(map[string]string)
			}
			annotations[key] = value
		}
	}
	trimmed.Annotations = annotations
	trimmed.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type != corev1.PodInitialized && v1alpha1.IsNativePodCondition(c.Type)
	})
	return trimmed
}

func trimContainer(c *corev1.Container) corev1.Container {
	return corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
}

func trimMarks(trimmed, pod *corev1.Pod) {
	trimmed.ManagedFields = mark.Entries(pod.ManagedFields)
	owned, err := mark.Owned(pod)
	if err != nil {
		// The controller that reads the marks meets the same error, and says so.
		owned = mark.Marks{}
	}
	for _, name := range owned.Names(mark.KindAnnotation) {
		metav1.SetMetaDataAnnotation(&trimmed.ObjectMeta, name, pod.Annotations[name])
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodInitialized || owned.Has(mark.ConditionType(string(c.Type))) {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, *c)
		}
	}
}

// trimNode keeps the node's identity and kind.
func trimNode(node *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	trimmed := &metav1.PartialObjectMetadata{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:            node.Name,
			UID:             node.UID,
			ResourceVersion: node.ResourceVersion,
		},
	}
	if kind, found := node.Labels[v1alpha1.NodeTypeLabel]; found {
		trimmed.Labels = map[string]string{v1alpha1.NodeTypeLabel: kind}
	}
	return trimmed
}
