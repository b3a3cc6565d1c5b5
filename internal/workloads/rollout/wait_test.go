// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestWaitOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hooks := &pub.Lifecycle{
		PreDelete:     &pub.LifecycleHook{LabelsHandler: map[string]string{"busy": "true"}, FinalizersHandler: []string{"game.io/match"}},
		InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{"busy": "true"}},
		PreNormal:     &pub.LifecycleHook{LabelsHandler: map[string]string{"joined": "true"}},
	}
	state := func(state pub.LifecycleStateType, labels ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Labels = map[string]string{pub.LifecycleStateKey: string(state)}
			for _, key := range labels {
				pod.Labels[key] = "true"
			}
		}
	}
	ready := func(status corev1.ConditionStatus, message string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			since := metav1.NewTime(now.Add(-4 * time.Second))
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, Message: message, LastTransitionTime: since}}
		}
	}
	for name, test := range map[string]struct {
		change func(pod *corev1.Pod)
		want   rollout.Wait
	}{
		"available": {ready(corev1.ConditionTrue, ""), rollout.Wait{Why: "is ready, and available in 6s"}},
		"not ready": {ready(corev1.ConditionFalse, "containers with unready status: [main]"), rollout.Wait{
			Why: "is not ready: containers with unready status: [main]",
		}},
		"not scheduled": {func(pod *corev1.Pod) {
			pod.Spec.NodeName = ""
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "Insufficient cpu"}}
		}, rollout.Wait{Why: "waits for the scheduler: Insufficient cpu", Wrong: true}},
		"an image cannot be pulled": {func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"},
			}}}
		}, rollout.Wait{Why: "container main waits: ImagePullBackOff: not found", Wrong: true}},
		"failed": {func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}, rollout.Wait{Why: "failed: Evicted: low on memory", Wrong: true}},
		"deleted": {func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(now.Add(-time.Minute))), []string{"a.io/b"}
			pod.DeletionGracePeriodSeconds = new(int64(30))
		}, rollout.Wait{Why: "has been terminating for 90s, and waits for its finalizers: a.io/b"}},
		"preDelete holds it": {func(pod *corev1.Pod) {
			state(pub.LifecycleStatePreparingDelete, "busy")(pod)
			pod.Finalizers = []string{"game.io/match"}
		}, rollout.Wait{
			Why: "spec.lifecycle.preDelete holds it in the state PreparingDelete until the label busy=true and the finalizer game.io/match are removed",
		}},
		"inPlaceUpdate holds it": {state(pub.LifecycleStatePreparingUpdate, "busy"), rollout.Wait{
			Why: "spec.lifecycle.inPlaceUpdate holds it in the state PreparingUpdate until the label busy=true is removed",
		}},
		"inPlaceUpdate holds it after the update": {state(pub.LifecycleStateUpdated), rollout.Wait{
			Why: "spec.lifecycle.inPlaceUpdate holds it in the state Updated until the label busy=true is added",
		}},
		"preNormal holds it": {state(pub.LifecycleStatePreparingNormal), rollout.Wait{
			Why: "spec.lifecycle.preNormal holds it in the state PreparingNormal until the label joined=true is added",
		}},
		"a hook has released it": {state(pub.LifecycleStatePreparingUpdate), rollout.Wait{Why: "is not ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
			test.change(pod)
			expect.Equal(t, "wait", test.want, rollout.WaitOf(pod, rollout.Rules{MinReady: 10 * time.Second, Hooks: hooks, Now: now}))
		})
	}
}
