// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// held is a pod that the hook holds.
func held(p *corev1.Pod) { p.Labels[match] = "on" }

func preparing(p *corev1.Pod) { inState(pub.LifecycleStatePreparingDelete)(p) }

// TestPreparingDeleteTruthTable is the table of the specification, with N = 3 and pod a held by the
// hook preDelete.
func TestPreparingDeleteTruthTable(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		change   func(*v1alpha1.CloneSet)
		pods     func(*fixture)
		// want is the step without the label, excluded with it. It is the same if excluded is nil.
		want, excluded []string
	}{
		"N to N-1: a enters PreparingDelete": {
			replicas: 2, pods: func(f *fixture) { f.pod("a", held, annotated(corev1.PodDeletionCost, "-1")).pod("b").pod("c") },
			want: []string{"~a PreparingDelete"},
		},
		"N to N-1, a is held: nothing": {
			replicas: 2, pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c") },
		},
		"N to N-1 to N: a returns to Normal": {
			replicas: 3, pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c") },
			want: []string{"~a Normal"},
		},
		"N to N-1 with a named: a enters PreparingDelete": {
			replicas: 2, change: naming("a"), pods: func(f *fixture) { f.pod("a", held).pod("b").pod("c") },
			want: []string{"~a PreparingDelete"},
		},
		"N to N-1 with a named, to N: waits or creates": {
			replicas: 3, change: naming("a"), pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c") },
			want: nil, excluded: []string{"+new"},
		},
		"N to N-1 with a named, to N, a is terminating: creates": {
			replicas: 3, change: naming("a"), pods: func(f *fixture) { f.pod("a", preparing, terminating).pod("b").pod("c") },
			want: []string{"+new"},
		},
		"a named at constant N: enters PreparingDelete, and creates with the label": {
			replicas: 3, change: naming("a"), pods: func(f *fixture) { f.pod("a", held).pod("b").pod("c") },
			want: []string{"~a PreparingDelete"}, excluded: []string{"+new", "~a PreparingDelete"},
		},
		"a named at constant N, held: waits or creates": {
			replicas: 3, change: naming("a"), pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c") },
			want: nil, excluded: []string{"+new"},
		},
		"a named at constant N, held, with its replacement: nothing": {
			replicas: 3, change: func(set *v1alpha1.CloneSet) { naming("a")(set); excluding(set) },
			pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c").pod("d") },
		},
		"a named by its label at constant N, held: waits or creates": {
			replicas: 3, pods: func(f *fixture) { f.pod("a", held, preparing, specified).pod("b").pod("c") },
			want: nil, excluded: []string{"+new"},
		},
		"a named at constant N, released: replaced": {
			replicas: 3, change: naming("a"), pods: func(f *fixture) { f.pod("a", preparing).pod("b").pod("c") },
			want: []string{"+new", "-a PreparedDelete"},
		},
		"the name is withdrawn: a returns to Normal": {
			replicas: 3, pods: func(f *fixture) { f.pod("a", held, preparing).pod("b").pod("c") },
			want: []string{"~a Normal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, exclude := range []bool{false, true} {
				f := newFixture(t, test.replicas, holding)
				want := test.want
				if test.change != nil {
					test.change(f.set)
				}
				if exclude {
					excluding(f.set)
					if test.excluded != nil {
						want = test.excluded
					}
				}
				test.pods(f)
				t.Logf("label: %t", exclude)
				f.wantSteps(t, want...)
			}
		})
	}
}

func TestMostValuablePodReturnsFromPreparingDelete(t *testing.T) {
	f := newFixture(t, 2, holding)
	f.pod("a", held, preparing, annotated(corev1.PodDeletionCost, "5")).
		pod("b", held, preparing, annotated(corev1.PodDeletionCost, "9")).
		pod("c", preparing, annotated(corev1.PodDeletionCost, "100")).pod("d")
	f.wantSteps(t, "-c PreparedDelete", "~b Normal")
}
