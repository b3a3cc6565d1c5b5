// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// TestPreparingDeleteTruthTable is the table of the specification, with N = 3 and pod a held by the
// hook preDelete.
func TestPreparingDeleteTruthTable(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		change   func(*v1alpha1.CloneSet)
		pods     string
		// want is the step without the label, excluded with it. It is the same if excluded is nil.
		want, excluded []string
	}{
		"N to N-1: a enters PreparingDelete":              {replicas: 2, pods: "a held cost=-1, b, c", want: []string{"~a PreparingDelete"}},
		"N to N-1, a is held: nothing":                    {replicas: 2, pods: "a held PreparingDelete, b, c"},
		"N to N-1 to N: a returns to Normal":              {replicas: 3, pods: "a held PreparingDelete, b, c", want: []string{"~a Normal"}},
		"N to N-1 with a named: a enters PreparingDelete": {replicas: 2, change: naming("a"), pods: "a held, b, c", want: []string{"~a PreparingDelete"}},
		"N to N-1 with a named, to N: waits or creates": {
			replicas: 3, change: naming("a"), pods: "a held PreparingDelete, b, c",
			want: nil, excluded: []string{"+new"},
		},
		"N to N-1 with a named, to N, a is terminating: creates": {
			replicas: 3, change: naming("a"), pods: "a PreparingDelete terminating, b, c",
			want: []string{"+new"},
		},
		"a named at constant N: enters PreparingDelete, and creates with the label": {
			replicas: 3, change: naming("a"), pods: "a held, b, c",
			want: []string{"~a PreparingDelete"}, excluded: []string{"+new", "~a PreparingDelete"},
		},
		"a named at constant N, held: waits or creates": {
			replicas: 3, change: naming("a"), pods: "a held PreparingDelete, b, c",
			want: nil, excluded: []string{"+new"},
		},
		"a named at constant N, held, with its replacement: nothing": {
			replicas: 3, change: func(set *v1alpha1.CloneSet) { naming("a")(set); excluding(set) },
			pods: "a held PreparingDelete, b, c, d",
		},
		"a named by its label at constant N, held: waits or creates": {
			replicas: 3, pods: "a held PreparingDelete named, b, c",
			want: nil, excluded: []string{"+new"},
		},
		"a named at constant N, released: replaced": {
			replicas: 3, change: naming("a"), pods: "a PreparingDelete, b, c",
			want: []string{"+new", "-a PreparedDelete"},
		},
		"the name is withdrawn: a returns to Normal": {replicas: 3, pods: "a held PreparingDelete, b, c", want: []string{"~a Normal"}},
	} {
		t.Run(name, func(t *testing.T) {
			byField := func(set *v1alpha1.CloneSet) { set.Spec.ScaleStrategy.ExcludePreparingDelete = true }
			for _, exclude := range []func(*v1alpha1.CloneSet){nil, excluding, byField} {
				f := newFixture(t, test.replicas, holding)
				want := test.want
				if test.change != nil {
					test.change(f.set)
				}
				if exclude != nil {
					exclude(f.set)
					if test.excluded != nil {
						want = test.excluded
					}
				}
				f.pod(test.pods)
				t.Logf("excluded: %t", exclude != nil)
				f.wantSteps(t, want...)
			}
		})
	}
}

func TestMostValuablePodReturnsFromPreparingDelete(t *testing.T) {
	f := newFixture(t, 2, holding)
	f.pod("a held PreparingDelete cost=5, b held PreparingDelete cost=9, c PreparingDelete cost=100, d")
	f.wantSteps(t, "-c PreparedDelete", "~b Normal")
}

// With OpenKruise, a pod may stay not ready.
func TestNotReadyIsClearedOnEveryWayBack(t *testing.T) {
	hooks := &pub.Lifecycle{
		PreDelete:     &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}, MarkPodNotReady: true},
		InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}, MarkPodNotReady: true},
	}
	marked := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			planning.AddGate(&p.Spec, pub.KruisePodReadyConditionType)
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: pub.KruisePodReadyConditionType, Status: corev1.ConditionFalse,
				Message: `[{"userAgent":"Lifecycle","key":"` + key + `"}]`,
			})
		}
	}
	paused := func(set *v1alpha1.CloneSet) { inPlace(set); set.Spec.UpdateStrategy.Paused = true }
	raised := func(set *v1alpha1.CloneSet) { inPlace(set); set.Spec.UpdateStrategy.Partition = number(1) }
	for name, test := range map[string]struct {
		change         func(*v1alpha1.CloneSet)
		pod, key, want string
	}{
		"replicas increases again":              {nil, "a held PreparingDelete", "preDeleteHook", "~a Normal"},
		"the hook is removed from the set":      {func(set *v1alpha1.CloneSet) { set.Spec.Lifecycle = nil }, "a held PreparingDelete", "preDeleteHook", "~a Normal"},
		"the template is rolled back":           {nil, "a held PreparingUpdate", "preUpdateHook", "~a Normal"},
		"the update is paused":                  {paused, "a old held PreparingUpdate", "preUpdateHook", "~a Normal"},
		"the partition is raised":               {raised, "a old held PreparingUpdate", "preUpdateHook", "~a Normal"},
		"the update is done":                    {nil, "a held Updating", "preUpdateHook", "~a Normal"},
		"a crash after the first of two writes": {nil, "a held", "preUpdateHook", "~a Readiness"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1)
			f.set.Spec.Lifecycle = hooks.DeepCopy()
			if test.change != nil {
				test.change(f.set)
			}
			f.pod(test.pod, marked(test.key))
			out := f.wantSteps(t, test.want)
			if len(out.Patches) == 0 || len(out.Patches[0].Conditions) == 0 ||
				out.Patches[0].Conditions[0].Status != corev1.ConditionTrue {
				t.Errorf("patches %+v, want KruisePodReady True", out.Patches)
			}
		})
	}
}
