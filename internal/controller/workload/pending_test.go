// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/workload/cloneset"
)

// podOf returns a pod of the set "web".
func podOf(name string, ready corev1.ConditionStatus) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web", UID: "web", Controller: &controller},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestLastEventEndsThePause(t *testing.T) {
	b := NewBase(Options{Kind: cloneset.Kind(), Now: func() time.Time { return time.Unix(1000, 0) }})
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	queue := priorityqueue.New[reconcile.Request]("sets")
	defer queue.ShutDown()
	var pods []*corev1.Pod
	for i := range 1000 {
		pods = append(pods, podOf(fmt.Sprint("web-", i), corev1.ConditionTrue))
	}
	gone := podOf("web-gone", corev1.ConditionTrue)
	gone.DeletionTimestamp = &metav1.Time{}
	pods = append(pods, podOf("web-starting", corev1.ConditionFalse), gone)
	b.memory.planned(key, "web", 1, pods, b.Now())
	b.memory.wrote(key, "web", &apply.Step{Created: 1, Deleted: []types.UID{"web-0"}})

	handler, unready := b.podEvents(), podOf("web-1", corev1.ConditionFalse)
	ready := func(name string) {
		handler.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{
			ObjectOld: podOf(name, corev1.ConditionFalse), ObjectNew: podOf(name, corev1.ConditionTrue),
		}, queue)
	}
	remove := func(pod *corev1.Pod) {
		handler.Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: pod}, queue)
	}
	for i, happen := range []func(){
		func() { ready("web-starting") },
		func() { remove(gone) },
		func() {
			handler.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: pods[1], ObjectNew: unready}, queue)
		},
		func() { remove(pods[0]) },
	} {
		if happen(); queue.Len() > 0 {
			t.Errorf("the set is planned after event %d, want only after the last pod became ready", i)
		}
	}
	if ready("web-new"); queue.Len() != 1 {
		t.Error("the set is not planned after the last pod became ready")
	}
	request, _, _ := queue.GetWithPriority()
	queue.Done(request)
	// A burst of other events has pauses again.
	for range 3 {
		if ready("web-1"); queue.Len() > 0 {
			t.Error("the set is planned without a pause after an event that it does not wait for")
		}
	}
}

func TestOnlyTheStepAfterAnInterruptedOneIsProven(t *testing.T) {
	t.Parallel()
	m, key := newMemory(), types.NamespacedName{Name: "web"}
	for name, test := range map[string]struct {
		step apply.Step
		want bool
	}{
		"budget used up":  {apply.Step{Created: 5, Incomplete: true}, true},
		"complete":        {apply.Step{Created: 5}, false},
		"no pod created":  {apply.Step{Incomplete: true}, false},
		"request refused": {apply.Step{Created: 5, Incomplete: true, Errs: []error{fmt.Errorf("overloaded")}}, false},
	} {
		m.wrote(key, "uid", &test.step)
		if got := m.takeProven(key, "uid"); got != test.want {
			t.Errorf("%s: proven %t, want %t", name, got, test.want)
		}
		if m.takeProven(key, "uid") {
			t.Errorf("%s: the step after the next one is proven, too", name)
		}
	}
}
