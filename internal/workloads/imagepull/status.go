// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
func (p *planning) conclude() {
	p.Progress.prune(p.Nodes)
	decided := p.count()
	p.advance()
	open := len(p.Nodes) - decided
	reason, message := p.explain(open)
	p.Status.Message = message
	condition := metav1.Condition{Type: v1alpha1.ImagePullJobComplete, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if open == 0 {
		condition.Status = metav1.ConditionTrue
	}
	if (open == 0) != p.isSettled() {
		p.Urgent = true
		if open == 0 {
			now := metav1.NewTime(p.Now.Truncate(time.Second))
			p.Status.Since = &now
			p.complete(reason, message, now)
		}
	}
	SetCondition(&p.Status, condition, p.Now)
}

// complete ends the job, if it ends, when each node has succeeded or failed.
func (p *planning) complete(reason, message string, now metav1.Time) {
	if !Ends(p.Job) {
		return
	}
	p.Status.CompletionTime, p.Next = &now, time.Time{}
	p.Delete = p.Pods
	event := Event{corev1.EventTypeNormal, reason, message}
	if reason != ReasonCompleted {
		event.Type = corev1.EventTypeWarning
	}
	p.Events = append(p.Events, event)
	if ttl := p.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil {
		p.Wake(now.Add(seconds(int64(*ttl))))
	}
}

// isSettled reports whether each node had succeeded or failed when the status was written.
func (p *planning) isSettled() bool {
	return meta.IsStatusConditionTrue(p.Job.Status.Conditions, v1alpha1.ImagePullJobComplete)
}

// count sets the numbers of the status, and returns that of the nodes that have succeeded or failed.
func (p *planning) count() int {
	decided, failed := 0, 0
	p.Status.FailedNodes = nil
	for _, node := range p.Nodes {
		found := p.Progress.find(node)
		if found == nil || !found.decided {
			continue
		}
		decided++
		if found.failed {
			if failed++; failed <= maxFailed {
				p.Status.FailedNodes = append(p.Status.FailedNodes, node.Name)
			}
		}
	}
	failed = min(decided, failed+int(p.Progress.unnamed))
	p.Status.Desired, p.Status.Active = int32(len(p.Nodes)), int32(p.active)
	p.Status.Failed, p.Status.Succeeded = int32(failed), int32(decided-failed)
	return decided
}

// advance sets the cursor to the last node that has succeeded or failed, and names those before it that have not. Nodes
// that cannot pull are not named: when they can, this is newer than the status.
func (p *planning) advance() {
	p.Status.Cursor, p.Status.Pulling = "", nil
	var open []string
	for _, node := range p.Nodes {
		found := p.Progress.find(node)
		switch {
		case found != nil && found.decided:
			p.Status.Cursor = node.Name
			p.Status.Pulling = append(p.Status.Pulling, open...)
			open = nil
		case found != nil && found.created || Usable(node):
			open = append(open, node.Name)
			if len(p.Status.Pulling)+len(open) > maxPulling {
				return
			}
		}
	}
}

// explain returns the reason of the condition Complete, and the message of the status. open is the number of nodes that
// have neither succeeded nor failed.
func (p *planning) explain(open int) (reason, message string) {
	message = fmt.Sprintf("%d of %d nodes have the image.", p.Status.Succeeded, p.Status.Desired)
	switch {
	case open == 0 && p.late:
		reason = ReasonDeadlineExceeded
	case open == 0 && p.Status.Failed > 0:
		reason = ReasonNodesFailed
	case open == 0:
		reason = ReasonCompleted
	case Parallelism(p.Job, len(p.Nodes)) == 0:
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

// SetCondition sets a condition that has changed at the time. It reports whether it differs.
func SetCondition(status *v1alpha1.ImagePullJobStatus, condition metav1.Condition, now time.Time) bool {
	condition.ObservedGeneration = status.ObservedGeneration
	condition.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	return meta.SetStatusCondition(&status.Conditions, condition)
}
