// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
	"github.com/seamark-dev/seamark/test/expect"
)

func paused(set *appsv1beta1.StatefulSet) { rolling(set).Paused = true }

// progressed returns the condition with the reason that began, or changed its status, before.
func progressed(reason string, before time.Duration) *appsv1.StatefulSetCondition {
	c := &appsv1.StatefulSetCondition{Type: "Progressing", Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(now().Add(-before))}
	if reason == "ProgressDeadlineExceeded" {
		c.Status = corev1.ConditionFalse
	}
	return c
}

// TestProgressing plans a step of a set with three replicas and a deadline of ten seconds.
func TestProgressing(t *testing.T) {
	t.Parallel()
	done, updating := []string{"0 updated", "1 updated", "2 updated"}, []string{"0 updated unready", "1 updated", "2 updated"}
	old := []string{"0", "1", "2 updated"}
	for name, test := range map[string]struct {
		change func(*appsv1beta1.StatefulSet)
		pods   []string
		before *appsv1.StatefulSetCondition
		// other is whether the status has another update revision.
		other  bool
		reason string
		// since is how long ago the time of the condition is, and requeue when the set is planned again.
		since, requeue time.Duration
		phase          rollout.Phase
	}{
		"no pods yet": {reason: "StatefulSetUpdated", requeue: 10 * time.Second, phase: rollout.Progressing},
		"available": {
			pods: done, before: progressed("StatefulSetUpdated", time.Minute),
			reason: "StatefulSetAvailable", since: time.Minute, phase: rollout.Complete,
		},
		"available late": {
			pods: done, before: progressed("ProgressDeadlineExceeded", time.Minute),
			reason: "StatefulSetAvailable", phase: rollout.Complete,
		},
		"begins": {
			pods: updating, before: progressed("StatefulSetAvailable", time.Hour),
			reason: "StatefulSetUpdated", requeue: 10 * time.Second, phase: rollout.Progressing,
		},
		"continues": {
			pods: updating, before: progressed("StatefulSetUpdated", 4*time.Second),
			reason: "StatefulSetUpdated", since: 4 * time.Second, requeue: 6 * time.Second, phase: rollout.Progressing,
		},
		"the deadline": {
			pods: updating, before: progressed("StatefulSetUpdated", 10*time.Second),
			reason: "ProgressDeadlineExceeded", phase: rollout.Stalled,
		},
		"after it": {
			pods: updating, before: progressed("ProgressDeadlineExceeded", time.Minute),
			reason: "ProgressDeadlineExceeded", since: time.Minute, phase: rollout.Stalled,
		},
		"a new revision": {
			pods: updating, before: progressed("ProgressDeadlineExceeded", time.Minute), other: true,
			reason: "StatefulSetUpdated", requeue: 10 * time.Second, phase: rollout.Progressing,
		},
		"paused": {
			change: paused, pods: old, before: progressed("StatefulSetUpdated", time.Minute),
			reason: "StatefulSetPaused", since: time.Minute, phase: rollout.Paused,
		},
		"paused after it": {
			change: paused, pods: old, before: progressed("ProgressDeadlineExceeded", time.Minute),
			reason: "StatefulSetPaused", phase: rollout.Paused,
		},
		"resumed": {
			pods: updating, before: progressed("StatefulSetPaused", time.Hour),
			reason: "StatefulSetUpdated", requeue: 10 * time.Second, phase: rollout.Progressing,
		},
		"the partition": {
			change: partition(2), pods: old, before: progressed("StatefulSetUpdated", time.Minute),
			reason: "ProgressPartitionAvailable", since: time.Minute, phase: rollout.Complete,
		},
		// The counts are those of a partition that is reached.
		"a canary is taken back": {
			change: partition(2), pods: []string{"0 updated", "1 updated", "2"}, before: progressed("StatefulSetUpdated", 4*time.Second),
			reason: "StatefulSetUpdated", since: 4 * time.Second, requeue: 6 * time.Second, phase: rollout.Progressing,
		},
		"a canary is taken back, paused": {
			change: both(partition(2), paused), pods: []string{"0 updated", "1 updated", "2"}, before: progressed("StatefulSetUpdated", time.Minute),
			reason: "StatefulSetPaused", since: time.Minute, phase: rollout.Paused,
		},
		"on delete": {
			change: onDelete, pods: old, before: progressed("StatefulSetUpdated", time.Minute),
			reason: "ProgressPartitionAvailable", since: time.Minute, phase: rollout.Complete,
		},
		"no replicas": {
			change: both(replicas(0), partition(1)), before: progressed("StatefulSetUpdated", time.Minute),
			reason: "StatefulSetAvailable", since: time.Minute, phase: rollout.Complete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := build(t, test.change).pods(t, test.pods...)
			f.set.Spec.ProgressDeadlineSeconds = new(int32(10))
			if f.set.Status.UpdateRevision = f.v2; test.other {
				f.set.Status.UpdateRevision = f.v1
			}
			if test.before != nil {
				f.set.Status.Conditions = []appsv1.StatefulSetCondition{*test.before}
			}
			out := f.plan(t)
			want := progressed(test.reason, test.since)
			got := out.Status.Conditions[0]
			want.Message = got.Message
			expect.Equal(t, "condition", *want, got)
			expect.Equal(t, "time until the next step", test.requeue, out.RequeueAfter)
			progress := statefulset.Progress(f.set, &out.Status)
			expect.Equal(t, "phase", test.phase, rollout.Decide(&progress, out.Outdated).Phase)
			f.set.Status = out.Status
			expect.Equal(t, "status at the same time", out.Status, f.plan(t).Status)
		})
	}
}

// TestNoProgressingWithoutDeadline also removes the condition when the deadline is removed.
func TestNoProgressingWithoutDeadline(t *testing.T) {
	t.Parallel()
	for name, deadline := range map[string]*int32{"none": nil, "the largest": new(int32(math.MaxInt32))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := build(t, paused).pods(t, "0", "1", "2")
			f.set.Spec.ProgressDeadlineSeconds = deadline
			f.set.Status.Conditions = []appsv1.StatefulSetCondition{*progressed("StatefulSetUpdated", time.Minute)}
			out := f.plan(t)
			expect.Equal(t, "number of conditions", 0, len(out.Status.Conditions))
			expect.Equal(t, "time until the next step", 0, out.RequeueAfter)
		})
	}
}

func TestMeaning(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]map[metav1.ConditionStatus]planning.Severity{
		"Progressing":     {"True": planning.SeverityOK, "False": planning.SeverityProblem},
		"Ready":           {"True": "", "False": ""},
		"Reconciling":     {"True": ""},
		"Stalled":         {"True": planning.SeverityProblem},
		"FailedCreatePod": {"True": planning.SeverityProblem, "False": ""},
	} {
		for status, want := range want {
			expect.Equal(t, kind, want, statefulset.ConditionSeverity(&metav1.Condition{Type: kind, Status: status}))
		}
	}
}
