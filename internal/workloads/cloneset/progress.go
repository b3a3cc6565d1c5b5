// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// progress sets the condition Progressing from the counts of the status. Reasons and messages are those
// of OpenKruise: health checks read them. The time that progressDeadlineSeconds bounds starts when the
// reason becomes CloneSetUpdated and with each new revision, so a set that has been available for long
// has the whole time for its next update.
func (p *planner) progress(s *v1alpha1.CloneSetStatus) {
	seconds := p.Set.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == math.MaxInt32 {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1alpha1.CloneSetCondition) bool {
			return c.Type == v1alpha1.CloneSetConditionTypeProgressing
		})
		return
	}
	if reason, message := p.resting(s); reason != "" {
		p.report(s, corev1.ConditionTrue, reason, message)
		return
	}
	deadline := time.Duration(*seconds) * time.Second
	c := find(s, v1alpha1.CloneSetConditionTypeProgressing)
	switch {
	case c == nil || p.Set.Status.UpdateRevision != s.UpdateRevision ||
		c.Reason != string(v1alpha1.CloneSetProgressUpdated) && c.Reason != string(v1alpha1.CloneSetProgressDeadlineExceeded):
		p.report(s, corev1.ConditionTrue, v1alpha1.CloneSetProgressUpdated, "CloneSet is progressing")
		find(s, v1alpha1.CloneSetConditionTypeProgressing).LastUpdateTime = metav1.NewTime(p.Now)
		p.after(deadline)
	case c.Reason == string(v1alpha1.CloneSetProgressDeadlineExceeded):
	case p.Now.Before(c.LastUpdateTime.Add(deadline)):
		p.after(c.LastUpdateTime.Add(deadline).Sub(p.Now))
	default:
		p.report(s, corev1.ConditionFalse, v1alpha1.CloneSetProgressDeadlineExceeded,
			fmt.Sprintf("CloneSet revision %s has timed out progressing", s.UpdateRevision))
	}
}

// resting returns why nothing has to happen in the set, and the message for it. The reason is empty if
// pods still must be created, deleted or updated, or become available.
func (p *planner) resting(s *v1alpha1.CloneSetStatus) (v1alpha1.CloneSetConditionReason, string) {
	replicas := clamp(p.replicas)
	switch {
	case s.CurrentRevision == s.UpdateRevision && s.Replicas == replicas &&
		s.UpdatedReplicas == replicas && s.UpdatedAvailableReplicas == replicas:
		return v1alpha1.CloneSetAvailable, "CloneSet is available"
	case p.Set.Spec.UpdateStrategy.Paused:
		return v1alpha1.CloneSetProgressPaused, "CloneSet is paused"
	case s.ExpectedUpdatedReplicas < replicas && s.ExpectedUpdatedReplicas <= s.UpdatedAvailableReplicas:
		return v1alpha1.CloneSetProgressPartitionAvailable, "CloneSet has been paused due to partition ready"
	default:
		return "", ""
	}
}

func (p *planner) report(
	s *v1alpha1.CloneSetStatus, status corev1.ConditionStatus, reason v1alpha1.CloneSetConditionReason, message string,
) {
	put(s, v1alpha1.CloneSetCondition{
		Type: v1alpha1.CloneSetConditionTypeProgressing, Status: status, Reason: string(reason), Message: message,
	}, p.Now)
}
