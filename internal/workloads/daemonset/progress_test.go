// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestDeadline blocks an update by a pod that does not end: the time of the deadline goes on when the reason of the condition changes.
// It begins again with another revision and after a pause.
func TestDeadline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set.Spec.ProgressDeadlineSeconds = new(int32(90))
	for _, pod := range f.pods {
		if pod.Spec.NodeName == "node-2" {
			f.change(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(f.in.Now)) })
		}
	}
	update := f.set.Spec.UpdateStrategy.RollingUpdate
	for _, stage := range []struct {
		name   string
		change func()
		after  time.Duration
		status corev1.ConditionStatus
		reason string
		phase  rollout.Phase
		since  time.Duration
	}{
		{"begins", nil, 0, "True", "Updating", rollout.Progressing, 0},
		{"is blocked", nil, 61 * time.Second, "False", "BlockedByUnavailable", rollout.Progressing, 61 * time.Second},
		{"has exceeded the time", nil, 29 * time.Second, "False", "ProgressDeadlineExceeded", rollout.Stalled, 90 * time.Second},
		{"is still late", nil, time.Second, "False", "ProgressDeadlineExceeded", rollout.Stalled, 91 * time.Second},
		{"is paused", func() { update.Paused = new(true) }, time.Second, "False", "Paused", rollout.Paused, 92 * time.Second},
		{"is resumed", func() { update.Paused = nil }, time.Hour, "False", "BlockedByUnavailable", rollout.Progressing, 0},
		{"is late again", nil, 90 * time.Second, "False", "ProgressDeadlineExceeded", rollout.Stalled, 90 * time.Second},
		{"has a new revision", func() { f.set.Spec.Template.Spec.Containers[0].Image = "agent:3" }, 0, "False", "BlockedByUnavailable", rollout.Progressing, 0},
		{"has no deadline", func() { f.set.Spec.ProgressDeadlineSeconds = nil }, time.Hour, "False", "BlockedByUnavailable", rollout.Progressing, time.Hour},
	} {
		if stage.change != nil {
			stage.change()
			f.set.Generation++
		}
		f.in.Now = f.in.Now.Add(stage.after)
		f.plan(t)
		i := slices.IndexFunc(f.set.Status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == v1alpha1.DaemonSetProgressing })
		c := f.set.Status.Conditions[i]
		expect.Equal(t, "status when the set "+stage.name, stage.status, c.Status)
		expect.Equal(t, "reason when the set "+stage.name, stage.reason, c.Reason)
		expect.Equal(t, "time when the set "+stage.name, stage.since, f.in.Now.Sub(c.LastTransitionTime.Time))
		progress := daemonset.Progress(f.set, &f.set.Status)
		expect.Equal(t, "phase when the set "+stage.name, stage.phase, rollout.Decide(&progress, 0).Phase)
		if stage.phase == rollout.Stalled && !strings.Contains(c.Message, "node-2") {
			t.Errorf("message %q, want it to name the node", c.Message)
		}
		before := f.set.Status
		expect.Equal(t, "status at the same time", before, f.plan(t).Status)
	}
}
