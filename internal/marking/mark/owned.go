// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Entry returns the managedFields entry that Seamark's applies to a pod's status create,
// or nil if there is none, which means that the pod has no marks.
func Entry(managed []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	for i := range managed {
		entry := &managed[i]
		if entry.Manager == v1alpha1.FieldManager &&
			entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "status" {
			return entry
		}
	}
	return nil
}

// Owned returns the marks that Seamark owns on the pod: see Parser.Owned.
func Owned(pod *corev1.Pod) (Marks, error) { return (*Parser)(nil).Owned(pod) }

// own adds the pod's value of the key or, of a condition, that of one field of it.
func (m Marks) own(pod *corev1.Pod, key Key, field string) {
	switch key.Kind {
	case KindLabel:
		if text, found := pod.Labels[key.Name]; found {
			m[key] = Value{Text: text}
		}
	case KindAnnotation:
		if text, found := pod.Annotations[key.Name]; found {
			m[key] = Value{Text: text}
		}
	case KindCondition:
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; string(c.Type) == key.Name {
				m[key] = Value{Condition: m[key].Condition.with(field, c)}
			}
		}
	}
}

// with returns the condition with one more field of the pod's condition.
func (c Condition) with(field string, from *corev1.PodCondition) Condition {
	switch field {
	case "status":
		c.Status = from.Status
	case "message":
		c.Message = from.Message
	case "lastProbeTime":
		c.LastProbeTime = from.LastProbeTime
	case "lastTransitionTime":
		c.LastTransitionTime = from.LastTransitionTime
	}
	return c
}

// depth is the length of the path to a mark: its object, its list or map, and its key.
const depth = 3

// keyOf returns the key of the mark that the path leads to, and the field of the mark if
// the path leads further.
func keyOf(path fieldpath.Path) (key Key, field string, isMark bool) {
	if len(path) < depth || path[0].FieldName == nil || path[1].FieldName == nil {
		return Key{}, "", false
	}
	if len(path) > depth && path[depth].FieldName != nil {
		field = *path[depth].FieldName
	}
	switch element := path[2]; *path[0].FieldName + "." + *path[1].FieldName {
	case "metadata.labels":
		if element.FieldName != nil {
			return Label(*element.FieldName), field, true
		}
	case "metadata.annotations":
		if element.FieldName != nil {
			return Annotation(*element.FieldName), field, true
		}
	case "status.conditions":
		if element.Key == nil {
			break
		}
		for _, part := range *element.Key {
			if part.Name == "type" && part.Value.IsString() {
				return ConditionType(part.Value.AsString()), field, true
			}
		}
	}
	return Key{}, "", false
}
