// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Markers is what a planner knows about the markers that select pods of the set. It is empty if no
// marker does.
type Markers struct {
	// Labels are the label keys that the markers write. A set whose selector contains one of them
	// loses its pods. A pod without such a key may get it when the next result is reported.
	Labels sets.Set[string]
	// Conditions are the condition types that the markers write. While one of them is Unknown in a
	// pod, labels that the marker wrote are about to return.
	Conditions sets.Set[corev1.PodConditionType]
}

// Failure is a write of a step that the API server refused. A conflict is not a failure: the step is
// planned again. The planners turn failures into conditions of the set.
type Failure struct {
	// Update reports whether the write was a patch of a pod or the expansion of a claim. All other
	// writes of a step create or delete revisions, claims or pods.
	Update bool
	// Object is the kind and the name of the object, for example "pod db-0".
	Object string
	// Err is the error of the API server.
	Err error
}

// SelectorMarked is the type of the condition of a set that is True while a marker writes a label key
// of the set's selector: the set releases a pod, and replaces it, when the marker changes the label.
const SelectorMarked = "SelectorMarked"

// MarkedKeys returns the label keys of the selector that markers write, sorted.
func MarkedKeys(selector *metav1.LabelSelector, markers Markers) []string {
	if selector == nil || len(markers.Labels) == 0 {
		return nil
	}
	keys := sets.KeySet(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		keys.Insert(selector.MatchExpressions[i].Key)
	}
	return sets.List(keys.Intersection(markers.Labels))
}
