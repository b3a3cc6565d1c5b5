// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// noState returns why a probe that is planned and can run has no state. It returns nil if the reports
// could not be read, and the marks would show a state.
func (d *Pod) noState(p plan.PlannedProbe) *Finding {
	if d.provided {
		return &Finding{Reason: NotProvided, Waiting: true, Condition: p.Source.PodConditionType}
	}
	if d.in.Statuses {
		if f := d.notStarted(p.Plan.ContainerName); f != nil {
			return f
		}
	}
	if d.in.ReportsUnread && !mark.InStatus(d.in.Node.Plan) {
		if p.Source.PodConditionType == "" {
			return &Finding{Reason: StateNotVisible}
		}
		return nil
	}
	if _, found := d.in.Pod.Report.States[p.ID]; found {
		return Finding{Reason: EarlierMarker}.after(d.required(), Settle, d.in.Now)
	}
	if p.Plan.Startup != nil {
		if !d.in.Statuses {
			// It is not known since when the probe runs.
			return &Finding{Reason: NoResult, Waiting: true}
		}
		if status := d.status(p.Plan.ContainerName); status != nil && !ptr.Deref(status.Started, false) {
			return &Finding{Reason: NotStartedUp, Waiting: true, Container: p.Plan.ContainerName}
		}
	}
	return d.pending(p)
}

// notStarted returns a finding if the container has never run: it has no state until then.
func (d *Pod) notStarted(container string) *Finding {
	f := Finding{Reason: NotStarted, Container: container}
	status := d.status(container)
	if status != nil {
		if status.ContainerID != "" || status.RestartCount > 0 || status.LastTerminationState.Terminated != nil ||
			status.State.Running != nil || status.State.Terminated != nil {
			return nil
		}
		if w := status.State.Waiting; w != nil {
			f.Detail = WaitingReason(w)
			if w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return &f
			}
		}
	}
	return f.after(d.Changed(), Startup, d.in.Now)
}

// WaitingReason returns the reason and the message of a container that waits.
func WaitingReason(w *corev1.ContainerStateWaiting) string {
	reason := w.Reason
	if reason == "" {
		reason = "no reason"
	}
	if w.Message != "" {
		reason += ": " + w.Message
	}
	return detail(reason)
}

// status returns the status of a container or sidecar, or nil if there is none.
func (d *Pod) status(container string) *corev1.ContainerStatus {
	status := &d.in.Pod.Object.Status
	for _, statuses := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == container {
				return &statuses[i]
			}
		}
	}
	return nil
}

// pending returns the finding about a probe that has not reached a threshold: when the first state is
// due according to the delay, the period and the thresholds. If it is not known when the container
// started, it may take the longest time.
func (d *Pod) pending(p plan.PlannedProbe) *Finding {
	policy := thresholds.PlannedPolicy(&p.Plan.Probe)
	start := d.required()
	if start.IsZero() || d.in.Now.IsZero() {
		return &Finding{Reason: NoResult, Waiting: true}
	}
	if !d.in.Statuses {
		start = start.Add(Startup + policy.InitialDelay)
	} else if status := d.status(p.Plan.ContainerName); status != nil && status.State.Running != nil {
		if first := status.State.Running.StartedAt.Add(policy.InitialDelay); first.After(start) {
			start = first
		}
	}
	threshold := max(policy.SuccessThreshold, policy.FailureThreshold)
	due := start.Add(time.Duration(threshold)*policy.Period + thresholds.PlannedTimeout(&p.Plan.Probe))
	return Finding{Reason: NoResult, Due: due}.after(due, Settle, d.in.Now)
}

// required returns since when the agent may have been required to run the probe. It is zero if this is
// not known.
func (d *Pod) required() time.Time {
	switch {
	case d.in.Node.Plan != nil:
		return podview.Edited(d.in.Node.Plan)
	case d.in.Pod.NodeKind == podview.KubeletNode:
		return d.Changed()
	default:
		return time.Time{}
	}
}
