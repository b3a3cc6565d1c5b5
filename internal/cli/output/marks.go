// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
)

// Marks returns the Ready condition of the pod and the marks that the markers set, each as
// key=value.
func Marks(view *local.PodView) []string {
	var marks []string
	for _, condition := range view.Pod.Status.Conditions {
		if condition.Type == corev1.PodReady || slices.Contains(view.MarkedConditions, string(condition.Type)) {
			marks = append(marks, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
		}
	}
	for _, key := range view.MarkedLabels {
		marks = append(marks, key+"="+view.Pod.Labels[key])
	}
	for _, key := range view.MarkedAnnotations {
		marks = append(marks, key+"="+view.Pod.Annotations[key])
	}
	return marks
}
