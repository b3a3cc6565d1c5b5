// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestConditions follows a set through its phases. A condition whose message changes keeps the time of its last transition.
func TestConditions(t *testing.T) {
	t.Parallel()
	r := New(cloneset.Set(false), Options{})
	status := &v1alpha1.CloneSetStatus{Conditions: []v1alpha1.CloneSetCondition{{Type: "PodsNotAdopted", Status: corev1.ConditionTrue}}}
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	ready, reconciling, stalled := v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	is := func(kind string, status corev1.ConditionStatus, why string, updated, transitioned int64) v1alpha1.CloneSetCondition {
		return v1alpha1.CloneSetCondition{
			Type: v1alpha1.CloneSetConditionType(kind), Status: status, Reason: why, Message: "because " + why,
			LastUpdateTime: at(updated), LastTransitionTime: at(transitioned),
		}
	}
	no, yes := corev1.ConditionFalse, corev1.ConditionTrue
	for i, test := range []struct {
		phase  rollout.Phase
		reason string
		want   []v1alpha1.CloneSetCondition
	}{
		{rollout.Progressing, "Creating", []v1alpha1.CloneSetCondition{is(ready, no, "Creating", 0, 0), is(reconciling, yes, "Creating", 0, 0)}},
		{rollout.Progressing, "Updating", []v1alpha1.CloneSetCondition{is(ready, no, "Updating", 1, 0), is(reconciling, yes, "Updating", 1, 0)}},
		{rollout.Paused, "Paused", []v1alpha1.CloneSetCondition{is(ready, no, "Paused", 2, 0), is(reconciling, yes, "Paused", 2, 0)}},
		{rollout.Stalled, "Deadline", []v1alpha1.CloneSetCondition{is(ready, no, "Deadline", 3, 0), is(stalled, yes, "Deadline", 3, 3)}},
		{rollout.Complete, "Complete", []v1alpha1.CloneSetCondition{is(ready, yes, "Complete", 4, 4)}},
		{rollout.Complete, "Complete", []v1alpha1.CloneSetCondition{is(ready, yes, "Complete", 4, 4)}},
		{rollout.Progressing, "NotAvailable", []v1alpha1.CloneSetCondition{is(ready, no, "NotAvailable", 6, 6), is(reconciling, yes, "NotAvailable", 6, 6)}},
	} {
		r.show(status, rollout.State{Phase: test.phase, Reason: rollout.Reason(test.reason), Message: "because " + test.reason}, at(int64(i)).Time)
		expect.Equal(t, "conditions after "+test.reason, test.want, status.Conditions[1:])
	}
	expect.Equal(t, "a condition of the planner", v1alpha1.CloneSetConditionType("PodsNotAdopted"), status.Conditions[0].Type)
	r.show(status, rollout.Unplanned(errors.New("a revision is broken")), at(9).Time)
	expect.Equal(t, "without a step", "False PlanFailed a revision is broken",
		string(status.Conditions[1].Status)+" "+status.Conditions[1].Reason+" "+status.Conditions[1].Message)
}

// TestCompleteStatusIsWrittenAtOnce also covers a step that deletes old revisions: clients wait for the status.
func TestCompleteStatusIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	b := newBase(Options{})
	expect.Equal(t, "the pause after a step without writes to pods", 0, b.postpone(&apply.Outcome{Writes: 1}, true, 0))
	expect.Equal(t, "the pause after a step that wrote to pods", retryDelay, b.postpone(&apply.Outcome{Pods: "1"}, true, 0))
	expect.Equal(t, "the pause while pods follow", progressPause, b.postpone(&apply.Outcome{Writes: 1}, false, 0))
}
