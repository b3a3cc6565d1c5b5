// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func partition(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Partition = number(n) }
}

func surge(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.MaxSurge, set.Spec.UpdateStrategy.MaxUnavailable = number(n), number(0)
	}
}

func paused(set *v1alpha1.CloneSet) { set.Spec.UpdateStrategy.Paused = true }

func scaleLimit(n int32) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) { set.Spec.ScaleStrategy.MaxUnavailable = number(n) }
}

func all(changes ...func(*v1alpha1.CloneSet)) func(*v1alpha1.CloneSet) {
	return func(set *v1alpha1.CloneSet) {
		for _, c := range changes {
			c(set)
		}
	}
}

func TestScale(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int32
		change   func(*v1alpha1.CloneSet)
		pods     func(*fixture)
		want     []string
	}{
		"no pods": {replicas: 2, want: []string{"+new", "+new"}},
		"nothing to do": {
			replicas: 2, pods: func(f *fixture) { f.pod("a").pod("b") },
		},
		"terminating and finished pods do not count": {
			replicas: 1, pods: func(f *fixture) {
				f.pod("a", terminating).pod("b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			}, want: []string{"+new", "-b Finished"},
		},
		"a finished pod that the hook holds": {
			replicas: 0, change: holding, pods: func(f *fixture) {
				f.pod("a", with(match, "on"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			}, want: []string{"~a PreparingDelete"},
		},
		"finished pods of others": {
			replicas: 0, pods: func(f *fixture) {
				failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
				f.pod("a", failed, with("app", "other")).pod("b", failed, func(p *corev1.Pod) { p.OwnerReferences = nil })
			},
		},
		"creates as many as maxUnavailable permits": {
			replicas: 5, change: scaleLimit(2), pods: func(f *fixture) { f.pod("a", notReady).pod("b") },
			want: []string{"+new"},
		},
		"creates none while a pod lacks the handler of preNormal": {
			replicas: 5, change: all(scaleLimit(1), preNormal), pods: func(f *fixture) {
				f.pod("a").pod("b", inState(pub.LifecycleStatePreparingNormal))
			},
		},
		"a pod that returns lacks the handler of preNormal": {
			replicas: 1, change: preNormal, pods: func(f *fixture) { f.pod("a", preparing) },
			want: []string{"~a PreparingNormal"},
		},
		"creates none while too many are unavailable": {
			replicas: 5, change: scaleLimit(1), pods: func(f *fixture) { f.pod("a", notReady).pod("b", notReady) },
		},
		"creates old pods while the partition requires them": {
			replicas: 4, change: partition(2), pods: func(f *fixture) { f.pod("a", f.isOld).pod("b") },
			want: []string{"+new", "+old"},
		},
		"scale in, not ready first": {
			replicas: 1, pods: func(f *fixture) { f.pod("a").pod("b", notReady).pod("c", readyFor(time.Minute)) },
			want: []string{"-b ScaleIn", "-c ScaleIn"},
		},
		"scale in, lower deletion cost first": {
			replicas: 1, pods: func(f *fixture) {
				f.pod("a", annotated(corev1.PodDeletionCost, "10")).pod("b", annotated(corev1.PodDeletionCost, "-1")).pod("c")
			},
			want: []string{"-b ScaleIn", "-c ScaleIn"},
		},
		"scale in, old revisions first": {
			replicas: 3, change: partition(1), pods: func(f *fixture) {
				f.many(f.isOld, "a", "b").pod("c", annotated(corev1.PodDeletionCost, "-5")).pod("d")
			}, want: []string{"-a ScaleIn"},
		},
		"scale in, old revisions until the partition is met": {
			replicas: 2, change: partition(1), pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c").pod("d") },
			want: []string{"-a ScaleIn", "-c ScaleIn"},
		},
		"scale in below the partition": {
			replicas: 1, change: partition(4), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"-a ScaleIn", "-b ScaleIn"},
		},
		"scale in leaves enough available pods": {
			replicas: 4, change: unavailable(number(1)), pods: func(f *fixture) {
				f.many(f.isOld, "a", "b", "c").many(notReady, "d", "e")
			},
			// Old pods come first. Only 3 pods are available, and 3 must be: no old pod may be deleted.
		},
		"named pods that are not ready at once": {
			replicas: 3, change: all(naming("a"), unavailable(number(0)), surge(1)), pods: func(f *fixture) {
				f.pod("a", notReady).pod("b").pod("c")
			}, want: []string{"+new", "-a SpecifiedDelete"},
		},
		"named pods that are ready as maxUnavailable permits": {
			replicas: 4, change: all(naming("a", "b", "c"), unavailable(number(2))), pods: func(f *fixture) {
				f.many(held, "a", "b", "c", "d")
			}, want: []string{"+new", "+new", "-a SpecifiedDelete", "-b SpecifiedDelete"},
		},
		"pods that are not ready count": {
			replicas: 4, change: all(naming("a"), unavailable(number(1))), pods: func(f *fixture) {
				f.pod("a").pod("b", notReady).pod("c").pod("d")
			},
		},
		"named pods before others when replicas decreases": {
			replicas: 2, change: naming("c"), pods: func(f *fixture) {
				f.pod("a", annotated(corev1.PodDeletionCost, "-9")).pod("b").pod("c")
			}, want: []string{"-c SpecifiedDelete"},
		},
		"the label names a pod, whatever its value is": {
			replicas: 2, pods: func(f *fixture) { f.pod("a").pod("b", with("apps.kruise.io/specified-delete", "false")) },
			want: []string{"+new", "-b SpecifiedDelete"},
		},
		"a surge replaces a named pod first": {
			replicas: 2, change: all(naming("a"), surge(1)), pods: func(f *fixture) { f.pod("a").pod("b") },
			want: []string{"+new"},
		},
		"a surge also while the update is paused": {
			replicas: 2, change: all(naming("a"), surge(1), paused), pods: func(f *fixture) { f.pod("a").pod("b") },
			want: []string{"+new"},
		},
		"the replacement is available": {
			replicas: 2, change: all(naming("a"), surge(1)), pods: func(f *fixture) { f.pod("a").pod("b").pod("c") },
			want: []string{"-a SpecifiedDelete"},
		},
		"a set that is being deleted": {
			replicas: 2, change: func(set *v1alpha1.CloneSet) { at := ago(0); set.DeletionTimestamp = &at },
		},
		"pods that were never pods of the set": {
			replicas: 0, pods: func(f *fixture) {
				orphan := func(p *corev1.Pod) { p.OwnerReferences = nil }
				f.pod("a", orphan, func(p *corev1.Pod) { delete(p.Labels, v1alpha1.CloneSetInstanceID) }).
					pod("b", orphan, with(v1alpha1.CloneSetInstanceID, "c")).
					pod("d", orphan, with(appsv1.ControllerRevisionHashLabelKey, "web-unknown"))
			},
		},
		"adoption and release come before everything else": {
			replicas: 5, pods: func(f *fixture) {
				f.pod("a", func(p *corev1.Pod) { p.OwnerReferences = nil }).pod("b", with("app", "other")).
					pod("c", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }).
					pod("d", func(p *corev1.Pod) { p.OwnerReferences, p.Labels["app"] = nil, "other" })
			}, want: []string{"~a Adopted", "~b Released"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.replicas)
			if test.change != nil {
				test.change(f.set)
			}
			if test.pods != nil {
				test.pods(f)
			}
			f.wantSteps(t, test.want...)
		})
	}
}

func TestMinReadySecondsDelayAvailability(t *testing.T) {
	f := newFixture(t, 2, naming("a"), unavailable(number(1)), func(set *v1alpha1.CloneSet) {
		set.Spec.MinReadySeconds = 30
	})
	f.pod("a").pod("b", readyFor(10*time.Second))
	out := f.wantSteps(t)
	if out.RequeueAfter != 20*time.Second || out.Status.ReadyReplicas != 2 || out.Status.AvailableReplicas != 1 {
		t.Errorf("requeue after %s with %d ready and %d available pods, want 20s, 2 and 1",
			out.RequeueAfter, out.Status.ReadyReplicas, out.Status.AvailableReplicas)
	}
}

func TestScaleInTakesPodsOfCrowdedZones(t *testing.T) {
	f := newFixture(t, 2, func(set *v1alpha1.CloneSet) {
		set.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
	})
	f.pod("a").pod("b").pod("c")
	f.nodes = map[string]map[string]string{"node-a": {"zone": "x"}, "node-b": {"zone": "y"}, "node-c": {"zone": "y"}}
	for _, p := range f.pods { // The template has changed.
		f.isOld(p)
	}
	paused(f.set)
	f.wantSteps(t, "-b ScaleIn")
}
