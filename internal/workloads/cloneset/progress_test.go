// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func progressed(reason string, before time.Duration) *v1alpha1.CloneSetCondition {
	status := corev1.ConditionTrue
	if reason == "ProgressDeadlineExceeded" {
		status = corev1.ConditionFalse
	}
	return &v1alpha1.CloneSetCondition{
		Type: "Progressing", Status: status, Reason: reason, LastUpdateTime: ago(before), LastTransitionTime: ago(time.Hour),
		Message: map[string]string{
			"CloneSetAvailable": "CloneSet is available", "CloneSetPaused": "CloneSet is paused",
			"CloneSetUpdated":            "CloneSet is progressing",
			"ProgressPartitionAvailable": "CloneSet has been paused due to partition ready",
			"ProgressDeadlineExceeded":   "CloneSet revision web-6d4f9b7c5 has timed out progressing",
		}[reason],
	}
}

// TestProgressing plans a step of a set with two replicas and a deadline of ten seconds. The messages
// and reasons are those of OpenKruise 1.9.
func TestProgressing(t *testing.T) {
	done := "a, b"
	updating := "a, b notReady"
	other := func(set *v1alpha1.CloneSet) { set.Status.UpdateRevision = "web-other" }
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   string
		before *v1alpha1.CloneSetCondition
		reason string
		// updated is how long ago the condition changed.
		updated time.Duration
		// requeue is when the set is planned again.
		requeue time.Duration
	}{
		"no pods yet":                {pods: "", reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"available":                  {pods: done, before: progressed("CloneSetUpdated", time.Second), reason: "CloneSetAvailable"},
		"available again":            {pods: done, before: progressed("CloneSetAvailable", time.Minute), reason: "CloneSetAvailable", updated: time.Minute},
		"available too late":         {pods: done, before: progressed("ProgressDeadlineExceeded", time.Minute), reason: "CloneSetAvailable"},
		"begins":                     {pods: updating, before: progressed("CloneSetAvailable", time.Hour), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"continues":                  {pods: updating, before: progressed("CloneSetUpdated", 4*time.Second), reason: "CloneSetUpdated", updated: 4 * time.Second, requeue: 6 * time.Second},
		"the deadline":               {pods: updating, before: progressed("CloneSetUpdated", 10*time.Second), reason: "ProgressDeadlineExceeded"},
		"after the deadline":         {pods: updating, before: progressed("ProgressDeadlineExceeded", time.Minute), reason: "ProgressDeadlineExceeded", updated: time.Minute},
		"another revision":           {change: other, pods: updating, before: progressed("CloneSetUpdated", 9*time.Second), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"another revision after it":  {change: other, pods: updating, before: progressed("ProgressDeadlineExceeded", time.Minute), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"paused":                     {change: paused, pods: updating, before: progressed("CloneSetUpdated", time.Minute), reason: "CloneSetPaused"},
		"paused after the deadline":  {change: paused, pods: updating, before: progressed("ProgressDeadlineExceeded", time.Minute), reason: "CloneSetPaused"},
		"resumed":                    {pods: updating, before: progressed("CloneSetPaused", time.Hour), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"the partition is available": {change: partition(1), pods: "a, b old", before: progressed("CloneSetUpdated", time.Second), reason: "ProgressPartitionAvailable"},
		"the partition is lowered":   {pods: "a, b old", before: progressed("ProgressPartitionAvailable", time.Hour), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"the partition is not":       {change: partition(1), pods: "a notReady, b old", before: progressed("CloneSetUpdated", 5*time.Second), reason: "CloneSetUpdated", updated: 5 * time.Second, requeue: 5 * time.Second},
		"no replicas":                {change: func(set *v1alpha1.CloneSet) { *set.Spec.Replicas = 0 }, pods: "", reason: "CloneSetAvailable"},
		"one pod too many":           {pods: "a, b, c", before: progressed("CloneSetAvailable", time.Hour), reason: "CloneSetUpdated", requeue: 10 * time.Second},
		"a pod is prepared for its deletion": {
			change: holding, pods: "a, b held PreparingDelete named", before: progressed("CloneSetAvailable", time.Hour), reason: "CloneSetUpdated", requeue: 10 * time.Second,
		},
		"a pod is prepared, and its replacement is available": {
			change: all(holding, excluding), pods: "a, b held PreparingDelete named, c",
			before: progressed("CloneSetUpdated", 4*time.Second), reason: "CloneSetUpdated", updated: 4 * time.Second, requeue: 6 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, func(set *v1alpha1.CloneSet) { set.Spec.ProgressDeadlineSeconds = pointer(int32(10)) })
			f.set.Status.UpdateRevision = f.new.Name
			if test.change != nil {
				test.change(f.set)
			}
			f.pod(test.pods)
			if test.before != nil {
				if test.before.Reason == "ProgressDeadlineExceeded" {
					test.before.Message = "CloneSet revision " + f.new.Name + " has timed out progressing"
				}
				f.set.Status.Conditions = []v1alpha1.CloneSetCondition{*test.before}
			}
			out := f.plan(t)
			want := progressed(test.reason, test.updated)
			if test.reason == "ProgressDeadlineExceeded" {
				want.Message = "CloneSet revision " + f.new.Name + " has timed out progressing"
			}
			if test.before == nil || test.before.Status != want.Status {
				want.LastTransitionTime = ago(0)
			}
			if test.before != nil && test.before.Reason == want.Reason && test.updated > 0 {
				want.Message = test.before.Message
			}
			expect.Equal(t, "conditions", []v1alpha1.CloneSetCondition{*want}, out.Status.Conditions)
			expect.Equal(t, "planned again after", test.requeue, out.RequeueAfter)
			f.set.Status = out.Status
			if again := f.plan(t).Status; !cmp.Equal(out.Status, again) {
				t.Errorf("the status changes at the same time (-first +second):\n%s", cmp.Diff(out.Status, again))
			}
		})
	}
}

// TestNoProgressingWithoutDeadline also removes the condition when the deadline is removed.
func TestNoProgressingWithoutDeadline(t *testing.T) {
	for name, deadline := range map[string]*int32{"none": nil, "the largest": pointer(int32(math.MaxInt32))} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, paused).pod("a")
			f.set.Spec.ProgressDeadlineSeconds = deadline
			f.set.Status.Conditions = []v1alpha1.CloneSetCondition{*progressed("CloneSetUpdated", time.Minute)}
			if out := f.plan(t); len(out.Status.Conditions) > 0 || out.RequeueAfter != 0 {
				t.Errorf("conditions %+v, planned again after %s, want neither", out.Status.Conditions, out.RequeueAfter)
			}
		})
	}
}
