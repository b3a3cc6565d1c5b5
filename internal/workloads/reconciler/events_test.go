// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/floor/podevents"
)

func TestSetsThatHaveBegunComeFirst(t *testing.T) {
	b := newBase(Options{Now: func() time.Time { return time.Unix(1000, 0) }})
	begun, other := types.NamespacedName{Name: "begun"}, types.NamespacedName{Name: "other"}
	b.expectations.update(begun, "uid", func(e *expectations) { e.plans(1, 0, b.Now()) })
	queue := priorityqueue.New[reconcile.Request]("sets")
	defer queue.ShutDown()
	b.enqueue(queue, other)
	b.enqueue(queue, begun)
	for _, want := range []struct {
		set      types.NamespacedName
		priority int
	}{{begun, begunPriority}, {other, 0}} {
		if got, priority, _ := queue.GetWithPriority(); got.NamespacedName != want.set || priority != want.priority {
			t.Errorf("set %s with priority %d is next, want %s with %d", got.Name, priority, want.set.Name, want.priority)
		}
	}
}

func BenchmarkPodWithoutSet(b *testing.B) {
	events := newBase(Options{Now: time.Now}).podEvents()
	podevents.Foreign(b, func(q controllers.Queue, before, after *corev1.Pod) {
		events.Update(b.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}, q)
	})
}

func TestChangesOfPodsThatMatter(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		// matters is the result, and soon whether it is known without a comparison of whole pods.
		matters, soon bool
	}{
		"resource version": {change: func(p *corev1.Pod) { p.ResourceVersion = "2" }},
		"phase":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true, true},
		"new condition": {func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled})
		}, true, true},
		"ready":       {func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }, true, true},
		"terminating": {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, true, true},
		"generation":  {func(p *corev1.Pod) { p.Generation++ }, true, true},
		"label":       {func(p *corev1.Pod) { p.Labels = map[string]string{"role": "primary"} }, true, false},
		"restart":     {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "set-a", ResourceVersion: "1"},
				Status: corev1.PodStatus{
					Phase:             corev1.PodPending,
					Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
					ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}},
				},
			}
			after := before.DeepCopy()
			test.change(after)
			b := newBase(Options{})
			if got := b.matters(before, after); got != test.matters {
				t.Errorf("matters %t, want %t", got, test.matters)
			}
			if got := changed(before, after); got != test.soon {
				t.Errorf("known without a comparison: %t, want %t", got, test.soon)
			}
		})
	}
}
