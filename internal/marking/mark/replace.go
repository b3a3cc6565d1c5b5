// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Replace replaces the owned marks on the pod by the desired ones, as a forced server-side
// apply does: it removes owned marks that are not desired, and it sets the desired marks
// even if another manager set them.
func Replace(pod *corev1.Pod, owned, desired Marks) {
	pod.Labels, pod.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	pod.Status.Conditions = slices.Clone(pod.Status.Conditions)
	for _, key := range owned.Keys() {
		if !desired.Has(key) {
			remove(pod, key)
		}
	}
	for _, key := range desired.Keys() {
		set(pod, key, desired[key])
	}
}

// Remove removes the keys from the pod. It modifies the pod's maps and conditions in place.
func Remove(pod *corev1.Pod, keys []Key) {
	for _, key := range keys {
		remove(pod, key)
	}
}

func remove(pod *corev1.Pod, key Key) {
	switch key.Kind {
	case KindLabel:
		delete(pod.Labels, key.Name)
	case KindAnnotation:
		delete(pod.Annotations, key.Name)
	case KindCondition:
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, hasType(key.Name))
	}
}

func set(pod *corev1.Pod, key Key, value Value) {
	switch key.Kind {
	case KindLabel:
		pod.Labels = with(pod.Labels, key.Name, value.Text)
	case KindAnnotation:
		pod.Annotations = with(pod.Annotations, key.Name, value.Text)
	case KindCondition:
		condition := corev1.PodCondition{
			Type: corev1.PodConditionType(key.Name), Status: value.Condition.Status,
			Reason: value.Condition.Reason, Message: value.Condition.Message,
			LastProbeTime: value.Condition.LastProbeTime, LastTransitionTime: value.Condition.LastTransitionTime,
		}
		if i := slices.IndexFunc(pod.Status.Conditions, hasType(key.Name)); i >= 0 {
			pod.Status.Conditions[i] = condition
		} else {
			pod.Status.Conditions = append(pod.Status.Conditions, condition)
		}
	}
}

func with(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = make(map[string]string)
	}
	values[key] = value
	return values
}

func hasType(name string) func(corev1.PodCondition) bool {
	return func(c corev1.PodCondition) bool { return string(c.Type) == name }
}
