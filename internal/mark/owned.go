// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// fields is one level of a set of owned fields, in the wire form of FieldsV1: "f:"
// before a field's or map's key, "k:" before the keys of a list's element.
type fields map[string]json.RawMessage

// ownedFields has the levels that lead to marks.
type ownedFields struct {
	Metadata struct {
		Labels      fields `json:"f:labels,omitempty"`
		Annotations fields `json:"f:annotations,omitempty"`
	} `json:"f:metadata,omitzero"`
	Status struct {
		Conditions fields `json:"f:conditions,omitempty"`
	} `json:"f:status,omitzero"`
}

// Entry returns the managedFields entry that Seamark's applies to a pod's status
// leave, or nil where there is none: the pod has no marks.
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

// Owned returns the marks that Seamark owns on the pod, with the values the pod has
// for them. A key that the pod no longer has is not among them. It returns an error
// where the pod's managedFields can't be read. A field of a condition that somebody else
// has set since is empty: it is no longer Seamark's.
func Owned(pod *corev1.Pod) (Marks, error) {
	var owned Marks
	entry := Entry(pod.ManagedFields)
	if entry == nil || entry.FieldsV1 == nil {
		return owned, nil
	}
	set, err := fieldsOf(entry)
	if err != nil {
		return owned, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for field := range set.Metadata.Labels {
		if value, found := pod.Labels[strings.TrimPrefix(field, "f:")]; found {
			owned.setLabel(strings.TrimPrefix(field, "f:"), value)
		}
	}
	for field := range set.Metadata.Annotations {
		if value, found := pod.Annotations[strings.TrimPrefix(field, "f:")]; found {
			owned.setAnnotation(strings.TrimPrefix(field, "f:"), value)
		}
	}
	return owned, owned.addConditions(pod, set.Status.Conditions)
}

func (m *Marks) addConditions(pod *corev1.Pod, owned fields) error {
	for field, inner := range owned {
		conditionType, isElement, err := elementType(field)
		if err != nil {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if !isElement {
			continue
		}
		var leaves fields
		if err := json.Unmarshal(inner, &leaves); err != nil {
			return fmt.Errorf("pod %s/%s: reading the managed fields of condition %s: %w", pod.Namespace, pod.Name, conditionType, err)
		}
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; string(c.Type) == conditionType {
				m.setCondition(ownedCondition(c, leaves))
			}
		}
	}
	return nil
}

// ownedCondition returns of the condition what Seamark owns by the leaves.
func ownedCondition(c *corev1.PodCondition, leaves fields) Condition {
	owned := Condition{Type: string(c.Type)}
	if _, own := leaves["f:status"]; own {
		owned.Status = c.Status
	}
	if _, own := leaves["f:message"]; own {
		owned.Message = c.Message
	}
	if _, own := leaves["f:lastProbeTime"]; own {
		owned.LastProbeTime = c.LastProbeTime
	}
	if _, own := leaves["f:lastTransitionTime"]; own {
		owned.LastTransitionTime = c.LastTransitionTime
	}
	return owned
}
