// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// progress sets the condition Progressing from the counts of the status.
func (p *planner) progress(s *appsv1beta1.StatefulSetStatus, conditions *planning.Conditions) {
	if !step.HasDeadline(p.set.Spec.ProgressDeadlineSeconds) {
		conditions.Remove(step.Progressing)
		return
	}
	is := func(status corev1.ConditionStatus, reason, message string) planning.SetCondition {
		return planning.SetCondition{Type: step.Progressing, Status: status, Reason: reason, Message: message}
	}
	if reason, message := resting(Progress(p.set, s), p.outdated()); reason != "" {
		conditions.Put(is(corev1.ConditionTrue, reason, message), p.Now)
		return
	}
	p.Progress(conditions, step.Deadline{
		Seconds: *p.set.Spec.ProgressDeadlineSeconds, Begins: p.set.Status.UpdateRevision != s.UpdateRevision,
		Reasons: []string{appsv1beta1.StatefulSetProgressUpdated},
		// The conditions of StatefulSets have no other time.
		Since:  func(c *planning.SetCondition) *metav1.Time { return &c.Transitioned },
		Within: is(corev1.ConditionTrue, appsv1beta1.StatefulSetProgressUpdated, "StatefulSet is progressing"),
		Exceeded: is(corev1.ConditionFalse, step.DeadlineExceeded,
			fmt.Sprintf("StatefulSet revision %s has timed out progressing", s.UpdateRevision)),
	})
}

// outdated returns the number of pods that the strategy updates and that are not updated.
func (p *planner) outdated() int32 {
	return planning.Number(len(slices.DeleteFunc(slices.Clone(p.targets), p.updated)))
}

// resting returns why nothing has to happen in the set, and the message for it. The reason is empty if pods still must be created,
// deleted or updated, or become available.
func resting(p planning.Progress, outdated int32) (reason, message string) {
	complete := rollout.Decide(&p, outdated).Phase == rollout.Complete
	switch {
	case complete && p.Updated == p.Desired:
		return appsv1beta1.StatefulSetAvailable, "StatefulSet is available"
	case p.Paused:
		return appsv1beta1.StatefulSetProgressPaused, "StatefulSet is paused"
	case complete:
		return appsv1beta1.StatefulSetProgressPartitionAvailable, "StatefulSet has updated all pods that its strategy permits"
	}
	return "", ""
}

// ConditionSeverity returns the severity of a condition of a StatefulSet.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	if c.Type == step.Progressing {
		return planning.SuccessSeverity(c)
	}
	return planning.FailureSeverity(c)
}
