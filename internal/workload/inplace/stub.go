// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workload"
)

// Decide returns the change that updates the pod in place from the template of its revision to
// another. If this is not possible, the change is nil and the text says why.
func Decide(pod *corev1.Pod, from, to *corev1.PodTemplateSpec) (*Change, string) {
	return nil, "not supported yet"
}

// Start returns the first write of an update in place.
func Start(pod *corev1.Pod, change *Change, target Target, now time.Time) *workload.PodPatch {
	return nil
}

// Next returns the next step of the update of the pod. It also sets the condition InPlaceUpdateReady
// of a pod that has the readiness gate and was never updated. Call it for every active pod of the set
// in each step of the planner.
func Next(pod *corev1.Pod, now time.Time) Step { return Step{} }

// Done reports whether the last update of the pod is done: its containers have been started with the
// new images and have the new resources. It is true for a pod that was never updated in place.
func Done(pod *corev1.Pod) bool { return true }
