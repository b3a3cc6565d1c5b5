// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
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

// Failure is a write of a step that failed. The planners turn failures into conditions of the set.
type Failure struct {
	// Update reports whether the write was a patch of a pod. All other writes of a step create or
	// delete revisions, claims or pods.
	Update bool
	// Object is the kind and the name of the object, for example "pod db-0".
	Object string
	// Err is the error of the API server.
	Err error
}
