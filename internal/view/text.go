// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// ProblemText describes why the probe cannot run in a pod, without the pod and the marker. The
// reason is one of package plan or serverless, or the ProbeErrorReason that an agent reports.
func ProblemText(p plan.Problem) string {
	switch p.Reason {
	case plan.ContainerNotFound:
		return fmt.Sprintf("Probe %q: container %q not found", p.ID.Probe, p.Container)
	case plan.PortNotFound:
		return fmt.Sprintf("Probe %q: container %q has no port %q", p.ID.Probe, p.Container, p.Port)
	case plan.TooManyMarkers:
		return tooManyMarkers(p)
	case plan.NodePlanFull:
		return fmt.Sprintf("Probe %q: not run, because the markers of the namespace exceed its share of the node's plan", p.ID.Probe)
	case serverless.ConditionTypeMissing:
		return fmt.Sprintf("Probe %q: podConditionType is required for pods on virtual nodes", p.ID.Probe)
	case serverless.ConditionTypeTaken:
		return fmt.Sprintf("Probe %q: podConditionType must be unique for pods on virtual nodes, and an earlier probe has the same", p.ID.Probe)
	case plan.TimeoutTooLong:
		return fmt.Sprintf("Probe %q: timeoutSeconds must be at most %d", p.ID.Probe, v1alpha1.MaxTimeoutSeconds)
	case plan.Reason(v1alpha1.ProbeCannotRun):
		return fmt.Sprintf("Probe %q: cannot be run", p.ID.Probe)
	case plan.Reason(v1alpha1.ProbeNotEnded):
		return fmt.Sprintf("Probe %q: the runtime has not ended an earlier run", p.ID.Probe)
	case plan.Reason(v1alpha1.ProbeWaitingForSlot):
		return fmt.Sprintf("Probe %q: waits for an exec slot of the node", p.ID.Probe)
	default:
		return fmt.Sprintf("Probe %q: exactly one handler is required", p.ID.Probe)
	}
}

// tooManyMarkers describes a probe of a marker that does not count in a pod, or all probes of the
// marker if the problem does not name one.
func tooManyMarkers(p plan.Problem) string {
	subject, counted := "Its probes are", ""
	if p.ID.Probe != "" {
		subject = fmt.Sprintf("Probe %q:", p.ID.Probe)
	}
	if p.Counted != "" {
		counted = ": " + p.Counted
	}
	return fmt.Sprintf("%s not run, because more than %d markers select the pod, and only the oldest count%s", subject, plan.MaxMarkers, counted)
}

// ConflictText describes a key that the pod has from the winner although the loser declares it too.
func ConflictText(c mark.Conflict) string {
	return fmt.Sprintf("Probe %q: %s %q is set by probe %q of marker %q",
		c.Loser.Probe, c.Key.Kind, c.Key.Name, c.Winner.Probe, c.Winner.Marker)
}
