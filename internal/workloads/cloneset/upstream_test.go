// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The tests in this file are named after behavior of OpenKruise that Seamark does not reproduce.

func TestReleasedPodIsDeletedWhileCreatesAreLimited(t *testing.T) {
	f := newFixture(t, 3, holding, excluding, func(set *v1alpha1.CloneSet) {
		set.Spec.ScaleStrategy.MaxUnavailable = number(1)
	})
	f.pod("a", preparing, specified).pod("b").pod("c", notReady)
	f.wantSteps(t, "-a PreparedDelete")
}

func TestPodsWithoutPriorityKeyAreUpdatedLast(t *testing.T) {
	f := newFixture(t, 3, unavailable(number(1)), func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.PriorityStrategy = &pub.UpdatePriorityStrategy{
			OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}},
		}
	})
	f.pod("a", f.isOld).pod("b", f.isOld, with("role", "x-1")).pod("c", f.isOld, with("role", "x-2"))
	f.wantSteps(t, "+new", "-c Update")
}

func TestScaleInContinuesWhileAHookIsPending(t *testing.T) {
	f := newFixture(t, 1, holding)
	f.pod("a", held, preparing).pod("b", held).pod("c", annotated(corev1.PodDeletionCost, "5")).
		pod("d", annotated(corev1.PodDeletionCost, "9"))
	f.wantSteps(t, "-c ScaleIn", "~b PreparingDelete")
}

func TestNotReadyIsClearedOnEveryWayBack(t *testing.T) {
	hooks := &pub.Lifecycle{
		PreDelete:     &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}, MarkPodNotReady: true},
		InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}, MarkPodNotReady: true},
	}
	marked := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			workload.AddGate(&p.Spec, pub.KruisePodReadyConditionType)
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: pub.KruisePodReadyConditionType, Status: corev1.ConditionFalse,
				Message: `[{"userAgent":"Lifecycle","key":"` + key + `"}]`,
			})
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   func(*fixture)
		want   string
	}{
		"replicas increases again": {
			pods: func(f *fixture) { f.pod("a", held, preparing, marked("preDeleteHook")) }, want: "~a Normal",
		},
		"the hook is removed from the set": {
			change: func(set *v1alpha1.CloneSet) { set.Spec.Lifecycle = nil },
			pods:   func(f *fixture) { f.pod("a", held, preparing, marked("preDeleteHook")) }, want: "~a Normal",
		},
		"the template is rolled back": {
			pods: func(f *fixture) {
				f.pod("a", held, inState(pub.LifecycleStatePreparingUpdate), marked("preUpdateHook"))
			}, want: "~a Normal",
		},
		"the update is paused": {
			change: func(set *v1alpha1.CloneSet) { inPlace(set); set.Spec.UpdateStrategy.Paused = true },
			pods: func(f *fixture) {
				f.pod("a", f.isOld, held, inState(pub.LifecycleStatePreparingUpdate), marked("preUpdateHook"))
			}, want: "~a Normal",
		},
		"the partition is raised": {
			change: func(set *v1alpha1.CloneSet) { inPlace(set); set.Spec.UpdateStrategy.Partition = number(1) },
			pods: func(f *fixture) {
				f.pod("a", f.isOld, held, inState(pub.LifecycleStatePreparingUpdate), marked("preUpdateHook"))
			}, want: "~a Normal",
		},
		"the update is done": {
			pods: func(f *fixture) { f.pod("a", held, inState(pub.LifecycleStateUpdating), marked("preUpdateHook")) },
			want: "~a Normal",
		},
		"a crash after the first of two writes": {
			pods: func(f *fixture) { f.pod("a", held, marked("preUpdateHook")) }, want: "~a Readiness",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1)
			f.set.Spec.Lifecycle = hooks.DeepCopy()
			if test.change != nil {
				test.change(f.set)
			}
			test.pods(f)
			out := f.wantSteps(t, test.want)
			if len(out.Patches) == 0 || len(out.Patches[0].Conditions) == 0 ||
				out.Patches[0].Conditions[0].Status != corev1.ConditionTrue {
				t.Errorf("patches %+v, want KruisePodReady True", out.Patches)
			}
		})
	}
}

func TestMarkerThatWritesASelectorKeyIsReported(t *testing.T) {
	f := newFixture(t, 1).pod("a")
	f.markers = workload.Markers{Labels: sets.New("app", "other")}
	out := f.plan(t)
	for _, c := range out.Status.Conditions {
		if string(c.Type) == workload.SelectorMarked && c.Status == corev1.ConditionTrue &&
			strings.Contains(c.Message, ": app.") {
			return
		}
	}
	t.Errorf("conditions %+v, want %s that names the key app", out.Status.Conditions, workload.SelectorMarked)
}
