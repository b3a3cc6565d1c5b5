// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// maxFailed is the number of nodes in status.failedNodes.
	maxFailed = 100
	// maxPulling is the maximum number of nodes in status.pulling: the cursor stops before there are more.
	maxPulling = 1000
)

// The reasons of the condition Complete.
const (
	ReasonCompleted        = "Completed"
	ReasonNodesFailed      = "NodesFailed"
	ReasonDeadlineExceeded = "DeadlineExceeded"
	ReasonPaused           = "Paused"
	ReasonWaiting          = "Waiting"
	ReasonPulling          = "Pulling"
)

// conclude sets the status.
func (p *planner) conclude() {
	p.Progress.prune(p.byName)
	open := p.count()
	reason, message := p.explain(open)
	p.Status.Message = message
	condition := metav1.Condition{Type: v1alpha1.ImagePullJobComplete, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if open == 0 {
		condition.Status = metav1.ConditionTrue
	}
	if was, _ := passDone(p.Job); was != (open == 0) {
		p.Urgent = true
		if open == 0 && ends(p.Job) {
			p.complete(reason, message)
		}
	}
	planning.PutCondition(&p.Status.Conditions, condition, p.Job.Generation, p.Now)
}

// complete ends the job.
func (p *planner) complete(reason, message string) {
	now := metav1.NewTime(p.Now.Truncate(time.Second))
	p.Status.CompletionTime, p.Next = &now, p.Now
	event := planning.Event{Type: corev1.EventTypeNormal, Reason: reason, Sentence: message}
	if reason != ReasonCompleted {
		event.Type = corev1.EventTypeWarning
	}
	p.StatusEvents = append(p.StatusEvents, event)
}

// count sets the numbers of the status and the cursor to the last node that has succeeded or failed, and names the nodes
// before it that have not. It returns how many have not.
func (p *planner) count() int {
	decided, failed, cursor := 0, 0, true
	p.Status.FailedNodes, p.Status.Cursor, p.Status.Pulling = nil, "", nil
	var open []string
	for _, node := range p.Nodes {
		switch found := p.Progress.pullOn(node); {
		case !found.decided:
			open = append(open, node.Name)
			cursor = cursor && len(open) <= maxPulling
			continue
		case found.failed:
			if failed++; failed <= maxFailed {
				p.Status.FailedNodes = append(p.Status.FailedNodes, node.Name)
			}
		}
		if decided++; cursor {
			p.Status.Cursor, p.Status.Pulling = node.Name, open
		}
	}
	failed = min(decided, failed+int(p.Progress.unnamed))
	p.Status.Desired, p.Status.Active = int32(len(p.Nodes)), int32(p.active)
	p.Status.Failed, p.Status.Succeeded = int32(failed), int32(decided-failed)
	return len(open)
}

// explain returns the reason of the condition Complete, and the message of the status. open is the number of nodes that
// have neither succeeded nor failed.
func (p *planner) explain(open int) (reason, message string) {
	message = fmt.Sprintf("%d of %d nodes have the image.", p.Status.Succeeded, p.Status.Desired)
	switch {
	case open == 0 && p.late:
		reason = ReasonDeadlineExceeded
	case open == 0 && p.Status.Failed > 0:
		reason = ReasonNodesFailed
	case open == 0:
		reason = ReasonCompleted
	case p.parallelism() == 0:
		reason = ReasonPaused
		message += " parallelism is 0."
	case p.skipped == open:
		reason = ReasonWaiting
	default:
		reason = ReasonPulling
	}
	if p.skipped > 0 {
		message += fmt.Sprintf(" %d wait until they are ready and have free disk space.", p.skipped)
	}
	if p.Status.Failed > 0 {
		message += fmt.Sprintf(" %d%s%s", p.Status.Failed, failureMark, p.Progress.failure)
	}
	return reason, message
}

// ConditionSeverity returns the severity of a condition of an ImagePullJob.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	switch {
	case c.Reason == ReasonNodesFailed, c.Reason == ReasonDeadlineExceeded:
		return planning.SeverityProblem
	case c.Type == v1alpha1.ImagePullJobPullsCreated:
		return planning.SuccessSeverity(c)
	}
	return planning.ProgressSeverity(c)
}
