// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/text"
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

// Conclude prints the marks that each pod had before it was stopped.
func (t *Text) Conclude(views []local.PodView) error {
	for i := range views {
		marks := Marks(&views[i])
		if len(marks) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(t.out, "%s: %s\n", views[i].Pod.Name, text.Line(strings.Join(marks, " "))); err != nil {
			return fmt.Errorf("write marks: %w", err)
		}
	}
	return nil
}
