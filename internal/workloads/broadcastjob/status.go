// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The reasons of conditions and events.
const (
	ReasonRunning   = "Running"
	ReasonPaused    = "Paused"
	ReasonNoNodes   = "NoNodes"
	ReasonPodFailed = "PodFailed"

	ReasonCompleted        = "Completed"
	ReasonPodsFailed       = "PodsFailed"
	ReasonDeadlineExceeded = "DeadlineExceeded"

	ReasonInvalidTemplate = "InvalidTemplate"
)

// decide ends the job, pauses it, or creates pods.
func (p *planner) decide() {
	policy, completion := p.Job.Spec.FailurePolicy.Type, &p.Job.Spec.CompletionPolicy
	ended := p.Status.Desired > 0 && p.Status.Succeeded+p.Status.Failed == p.Status.Desired
	deadline := completion.ActiveDeadlineSeconds
	late := deadline != nil && completion.Type != v1alpha1.BroadcastJobNever && p.Reached(p.Now, p.Status.StartTime.Time, *deadline)
	switch {
	case p.Job.Spec.Paused:
		p.progress(v1alpha1.BroadcastJobPaused, ReasonPaused, " spec.paused is true.")
	case len(p.failed) > 0 && policy == v1alpha1.BroadcastJobPause:
		p.progress(v1alpha1.BroadcastJobPaused, ReasonPodFailed,
			" The job goes on when the failed pods are deleted, whose nodes get another one, or when the failure policy is another one.")
	case len(p.failed) > 0 && policy != v1alpha1.BroadcastJobContinue:
		p.fail(ReasonPodFailed, "The failure policy is FailFast.")
	case ended && completion.Type != v1alpha1.BroadcastJobNever:
		p.complete()
	case late:
		p.fail(ReasonDeadlineExceeded, fmt.Sprintf("completionPolicy.activeDeadlineSeconds is %d.", *deadline))
	default:
		p.create()
		reason := ReasonRunning
		if p.Status.Desired == 0 {
			reason = ReasonNoNodes
		}
		p.progress(v1alpha1.BroadcastJobRunning, reason, "")
	}
}

// progress sets the phase and the condition of a job that has not ended.
func (p *planner) progress(phase v1alpha1.BroadcastJobPhase, reason, why string) {
	if p.Status.Phase != phase {
		p.Urgent = true
		if reason == ReasonPodFailed {
			p.event(corev1.EventTypeWarning, ReasonPaused, p.message())
		}
	}
	p.Status.Phase = phase
	p.condition(v1alpha1.BroadcastJobComplete, metav1.ConditionFalse, reason, p.message()+why)
}

// complete ends the job: each node has ended.
func (p *planner) complete() {
	reason, kind := ReasonCompleted, corev1.EventTypeNormal
	if len(p.failed) > 0 {
		reason, kind = ReasonPodsFailed, corev1.EventTypeWarning
	}
	p.finish(v1alpha1.BroadcastJobCompleted)
	p.condition(v1alpha1.BroadcastJobComplete, metav1.ConditionTrue, reason, p.message())
	p.event(kind, "JobComplete", p.message())
}

// fail ends the job: the pods that have not ended are deleted, and their nodes count as failed, as in OpenKruise.
func (p *planner) fail(reason, why string) {
	message := p.message() + " " + why
	p.clear(func(*corev1.Pod) bool { return true })
	p.Status.Failed += p.Status.Active
	p.Status.Active = 0
	p.finish(v1alpha1.BroadcastJobHasFailed)
	p.condition(v1alpha1.BroadcastJobComplete, metav1.ConditionFalse, reason, message)
	p.condition(v1alpha1.BroadcastJobFailed, metav1.ConditionTrue, reason, message)
	p.event(corev1.EventTypeWarning, "JobFailed", message)
}

func (p *planner) finish(phase v1alpha1.BroadcastJobPhase) {
	now := metav1.NewTime(p.Now.Truncate(time.Second))
	p.Status.Phase, p.Status.CompletionTime, p.Urgent, p.Next = phase, &now, true, p.Now
}

// message says how far the job is, and names the nodes that need attention.
func (p *planner) message() string {
	message := "No node fits the template."
	switch {
	case p.Status.Desired > 0:
		message = fmt.Sprintf("%d of %d nodes succeeded.", p.Status.Succeeded, p.Status.Desired)
	case len(p.absent) > 0:
		message = "No node that fits the template is ready."
	}
	if len(p.failed) > 0 {
		message += fmt.Sprintf(" %d failed: %s.", len(p.failed), text.List(p.failed, text.MaxNames))
	}
	if p.Status.Active > 0 {
		message += fmt.Sprintf(" %d have a pod that has not ended.", p.Status.Active)
	}
	if len(p.unscheduled) > 0 {
		message += fmt.Sprintf(" %d of these wait for the scheduler: %s.", len(p.unscheduled), text.List(p.unscheduled, text.MaxNames))
	}
	if left := len(p.pending) + p.going; left > 0 {
		message += fmt.Sprintf(" %d get a pod later.", left)
	}
	if len(p.absent) > 0 {
		message += fmt.Sprintf(" %d are left out, because they are not ready for %s: %s.", len(p.absent), Patience, text.List(p.absent, text.MaxNames))
	}
	return message
}

func (p *planner) event(kind, reason, message string) {
	p.StatusEvents = append(p.StatusEvents, planning.Event{Type: kind, Reason: reason, Sentence: message})
}

func (p *planner) condition(conditionType string, status metav1.ConditionStatus, reason, message string) {
	condition := metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
	planning.PutCondition(&p.Status.Conditions, condition, p.Job.Generation, p.Now)
}

// ConditionSeverity returns the severity of a condition of a BroadcastJob.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	switch {
	case slices.Contains([]string{ReasonNoNodes, ReasonPodFailed, ReasonPodsFailed, ReasonDeadlineExceeded}, c.Reason):
		return planning.SeverityProblem
	case c.Type == v1alpha1.BroadcastJobPodsCreated:
		return planning.SuccessSeverity(c)
	case c.Type == v1alpha1.BroadcastJobComplete:
		return planning.ProgressSeverity(c)
	}
	return planning.FailureSeverity(c)
}
