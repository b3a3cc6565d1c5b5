// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// brief prints the changes that matter to a person, and the marks of each pod at the end.
type brief struct {
	*output.Text
	out     io.Writer
	verbose bool
}

// Print prints the change unless it is a standard condition other than Ready.
func (b brief) Print(change local.Change) error {
	if !b.verbose && isDetail(change) {
		return nil
	}
	return b.Text.Print(change)
}

// isDetail reports whether a change is a condition that Kubernetes sets on every pod, except
// for Ready, which sums them up.
func isDetail(change local.Change) bool {
	return change.Kind == local.KindCondition && change.Condition.Type != corev1.PodReady &&
		v1alpha1.IsNativePodCondition(change.Condition.Type)
}

// isShutdownNoise reports whether a change only shows that the pods are being stopped after
// the run.
func isShutdownNoise(change local.Change) bool {
	switch change.Kind {
	case local.KindPod, local.KindContainer, local.KindCondition, local.KindProbe:
		return true
	case local.KindEvent:
		return change.Event.Type == corev1.EventTypeNormal || change.Event.Reason == lifecycle.ReasonUnhealthy
	default:
		return false
	}
}

// Conclude prints the marks that each pod had before it was stopped.
func (b brief) Conclude(views []local.PodView) error {
	for i := range views {
		marks := output.Marks(&views[i])
		if len(marks) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(b.out, "%s: %s\n", views[i].Pod.Name, text.Line(strings.Join(marks, " "))); err != nil {
			return fmt.Errorf("write marks: %w", err)
		}
	}
	return nil
}
