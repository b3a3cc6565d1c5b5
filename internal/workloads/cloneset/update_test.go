// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/template"
)

// hooked adds an inPlaceUpdate hook that holds pods with the label match, and updates in place.
func hooked(set *v1alpha1.CloneSet) {
	inPlace(set)
	set.Spec.Lifecycle = &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}}}
}

func onDelete(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteCloneSetUpdateStrategyType
}

// preNormal adds a preNormal hook with the label match.
func preNormal(set *v1alpha1.CloneSet) {
	set.Spec.Lifecycle = &pub.Lifecycle{PreNormal: &pub.LifecycleHook{LabelsHandler: map[string]string{match: "on"}}}
}

func inPlaceOnly(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
}

// env makes the update impossible in place.
func env(set *v1alpha1.CloneSet) {
	set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: "1"}}
}

func byRole(set *v1alpha1.CloneSet) {
	set.Spec.UpdateStrategy.PriorityStrategy = &pub.UpdatePriorityStrategy{
		OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "role"}},
	}
}

func TestUpdate(t *testing.T) {
	one := unavailable(number(1))
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   func(*fixture)
		want   []string
	}{
		"recreates as many as maxUnavailable permits": {
			change: unavailable(number(2)), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new", "+new", "-a Update", "-b Update"},
		},
		"pods that are not ready first, and beyond maxUnavailable": {
			change: one, pods: func(f *fixture) {
				f.many(f.isOld, "a").pod("b", f.isOld, notReady).pod("c", f.isOld, notReady)
			}, want: []string{"+new", "+new", "-b Update", "-c Update"},
		},
		"unavailable updated pods count": {
			change: one, pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c", notReady) },
		},
		"paused": {
			change: paused, pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
		},
		"OnDelete": {
			change: onDelete, pods: func(f *fixture) { f.many(f.isOld, "a").pod("b", f.isOld, notReady).pod("c") },
		},
		"OnDelete, a pod was deleted": {
			change: onDelete, pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c", f.isOld, terminating) },
			want: []string{"+new"},
		},
		"OnDelete, a pod is named": {
			change: all(onDelete, naming("a")), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new", "-a SpecifiedDelete"},
		},
		"OnDelete uses no surge": {
			change: all(onDelete, surge(1)), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
		},
		"OnDelete keeps what the partition requires": {
			change: all(onDelete, partition(2)), pods: func(f *fixture) { f.many(f.isOld, "a").pod("c") }, want: []string{"+old"},
		},
		"OnDelete withdraws an update that waits for the hook": {
			change: all(hooked, onDelete), pods: func(f *fixture) {
				f.pod("a", f.isOld, held, inState(pub.LifecycleStatePreparingUpdate)).many(f.isOld, "b", "c")
			}, want: []string{"~a Normal"},
		},
		"OnDelete continues an update that has begun": {
			change: all(hooked, onDelete), pods: func(f *fixture) {
				f.pod("a", held, inState(pub.LifecycleStateUpdating)).many(f.isOld, "b", "c")
			}, want: []string{"~a Normal"},
		},
		"the partition is met": {
			change: partition(2), pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c") },
		},
		"the partition permits one": {
			change: all(partition(2), unavailable(number(3))), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new", "-a Update"},
		},
		"a surge first": {
			change: surge(1), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new"},
		},
		"the surge is available": {
			change: surge(1), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c").pod("d") },
			want: []string{"+new", "-a Update"},
		},
		"the last old pod goes with the surge": {
			change: surge(1), pods: func(f *fixture) { f.many(f.isOld, "a").pod("b").pod("c").pod("d") },
			want: []string{"-a ScaleIn"},
		},
		"recreated pods that a hook holds are marked": {
			change: all(one, holding), pods: func(f *fixture) { f.pod("a", f.isOld, held).many(f.isOld, "b", "c") },
			want: []string{"~a PreparingDelete+specified"},
		},
		"marked pods do not return to Normal": {
			change: all(one, holding), pods: func(f *fixture) {
				f.pod("a", f.isOld, held, preparing, specified).many(f.isOld, "b", "c")
			},
		},
		"in place": {
			change: all(one, inPlace), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"~a Updating"},
		},
		"in place waits for the hook": {
			change: all(one, hooked), pods: func(f *fixture) { f.pod("a", f.isOld, held).many(f.isOld, "b", "c") },
			want: []string{"~a PreparingUpdate"},
		},
		"held": {
			change: all(one, hooked), pods: func(f *fixture) {
				f.pod("a", f.isOld, held, inState(pub.LifecycleStatePreparingUpdate)).many(f.isOld, "b", "c")
			},
		},
		"released": {
			change: all(one, hooked), pods: func(f *fixture) {
				f.pod("a", f.isOld, inState(pub.LifecycleStatePreparingUpdate)).many(f.isOld, "b", "c")
			}, want: []string{"~a Updating"},
		},
		"done, the hook is not restored": {
			change: all(one, hooked), pods: func(f *fixture) {
				f.pod("a", inState(pub.LifecycleStateUpdating)).many(f.isOld, "b", "c")
			}, want: []string{"~a Updated"},
		},
		"updated, the hook is not restored": {
			change: all(one, hooked), pods: func(f *fixture) {
				f.pod("a", inState(pub.LifecycleStateUpdated)).many(f.isOld, "b", "c")
			},
		},
		"updated, the hook is restored": {
			change: all(one, hooked), pods: func(f *fixture) {
				f.pod("a", held, inState(pub.LifecycleStateUpdated)).many(f.isOld, "b", "c")
			}, want: []string{"~a Normal"},
		},
		"the handler of preNormal is missing": {
			change: all(one, preNormal), pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c", inState(pub.LifecycleStatePreparingNormal)) },
		},
		"the handler of preNormal is there": {
			change: all(one, preNormal), pods: func(f *fixture) {
				f.many(f.isOld, "a", "b").pod("c", held, inState(pub.LifecycleStatePreparingNormal))
			}, want: []string{"~c Normal"},
		},
		"there is no hook preNormal": {
			change: one, pods: func(f *fixture) { f.many(f.isOld, "a", "b").pod("c", inState(pub.LifecycleStatePreparingNormal)) },
			want: []string{"~c Normal"},
		},
		"pods without the handler of preNormal, as far as others serve": {
			change: all(one, inPlace, preNormal), pods: func(f *fixture) {
				f.many(func(p *corev1.Pod) { f.isOld(p); inState(pub.LifecycleStatePreparingNormal)(p) }, "a", "b").pod("c")
			}, want: []string{"~a Updating"},
		},
		"a pod in transition is pinned when the labels change": {
			change: all(one, hooked, byRole), pods: func(f *fixture) {
				f.pod("a", f.isOld, inState(pub.LifecycleStatePreparingUpdate), with("role", "x-1")).
					pod("b", f.isOld, with("role", "x-9")).pod("c", f.isOld, with("role", "x-8"))
			}, want: []string{"~a Updating"},
		},
		"other changes recreate": {
			change: all(one, inPlace, env), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new", "-a Update"},
		},
		"other changes are refused with InPlaceOnly": {
			change: all(one, inPlaceOnly, env), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
		},
		"refused with a surge": {
			change: all(surge(1), inPlaceOnly, env), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
		},
		"a pod that waits for the hook returns when the change is refused": {
			change: all(one, hooked, inPlaceOnly, env), pods: func(f *fixture) {
				f.pod("a", f.isOld, held, inState(pub.LifecycleStatePreparingUpdate)).many(f.isOld, "b", "c")
			}, want: []string{"~a Normal"},
		},
		"a pod of an unknown revision is recreated": {
			change: all(one, inPlace), pods: func(f *fixture) {
				f.pod("a", with(appsv1.ControllerRevisionHashLabelKey, "web-gone")).pod("b").pod("c")
			}, want: []string{"+new", "-a Update"},
		},
		"named deletions and updates share maxUnavailable": {
			change: all(unavailable(number(2)), naming("c")), pods: func(f *fixture) { f.many(f.isOld, "a", "b", "c") },
			want: []string{"+new", "+new", "-a Update", "-c SpecifiedDelete"},
		},
		"a state of another version of OpenKruise": {
			change: one, pods: func(f *fixture) { f.pod("a", inState("Other")).pod("b").pod("c") },
			want: []string{"~a Normal"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, test.change)
			test.pods(f)
			f.wantSteps(t, test.want...)
		})
	}
}

func TestUpdateWaitsForTheLabelOfAMarker(t *testing.T) {
	f := newFixture(t, 3, unavailable(number(1)), byRole)
	f.markers = workload.Markers{Labels: sets.New("role")}
	f.pod("a", f.isOld, with("role", "x-1")).pod("b", f.isOld, with("role", "x-2")).
		pod("c", f.isOld, readyFor(10*time.Second))
	if out := f.wantSteps(t); out.RequeueAfter != 20*time.Second {
		t.Errorf("requeue after %s, want 20s", out.RequeueAfter)
	}
	f.pods[2].Status.Conditions[0].LastTransitionTime = ago(30 * time.Second)
	f.wantSteps(t, "+new", "-b Update")
}

func TestPausedUpdateDoesNotWaitForLabels(t *testing.T) {
	f := newFixture(t, 1, byRole, paused)
	f.markers = workload.Markers{Labels: sets.New("role")}
	f.pod("a", f.isOld, readyFor(0))
	if out := f.wantSteps(t); out.RequeueAfter != 0 {
		t.Errorf("requeue after %s, want none", out.RequeueAfter)
	}
}

func TestRefusedUpdateIsReportedOnce(t *testing.T) {
	f := newFixture(t, 1, inPlaceOnly, env)
	f.pod("a", f.isOld)
	out := f.plan(t)
	if len(out.Status.Conditions) != 1 || out.Status.Conditions[0].Type != v1alpha1.CloneSetConditionFailedUpdate ||
		!strings.Contains(out.Status.Conditions[0].Message, "web-a") || len(out.Events) != 1 {
		t.Errorf("conditions %+v and events %+v, want FailedUpdate that names the pod", out.Status.Conditions, out.Events)
	}
	f.set.Status = out.Status
	if out := f.plan(t); len(out.Events) != 0 {
		t.Errorf("events %+v in the second step, want none", out.Events)
	}
}

func TestInPlaceUpdateChangesRevisionStateAndImageInOneWrite(t *testing.T) {
	f := newFixture(t, 1, inPlace, unavailable(number(1)))
	f.pod("a", f.isOld)
	out := f.wantSteps(t, "~a Updating")
	patch := out.Patches[0]
	if patch.Images["main"] != "app:2" || *patch.Labels[appsv1.ControllerRevisionHashLabelKey] != f.new.Name {
		t.Errorf("patch %+v, want the new image and the new revision", patch)
	}
}

// BenchmarkPlan plans a step of a set with 3,000 pods.
func BenchmarkPlan(b *testing.B) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.CloneSet)
		pods   func(f *fixture, i int) func(*corev1.Pod)
	}{
		"at rest": {change: inPlace, pods: func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) }},
		"in place": {
			change: all(inPlace, unavailable(number(30))),
			pods: func(f *fixture, i int) func(*corev1.Pod) {
				return f.ofRevision([]*appsv1.ControllerRevision{f.old, f.new}[i%2])
			},
		},
		"in place only, impossible": {
			change: func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
				set.Spec.Template.Spec.HostNetwork = true
			},
			pods: func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.old) },
		},
		"recreate": {
			change: unavailable(number(30)),
			pods: func(f *fixture, i int) func(*corev1.Pod) {
				return f.ofRevision([]*appsv1.ControllerRevision{f.old, f.new}[i%2])
			},
		},
		"scale in": {
			change: func(set *v1alpha1.CloneSet) { set.Spec.Replicas = pointer(int32(1500)) },
			pods:   func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) },
		},
		"scale out": {
			change: func(set *v1alpha1.CloneSet) { set.Spec.Replicas = pointer(int32(6000)) },
			pods:   func(f *fixture, _ int) func(*corev1.Pod) { return f.ofRevision(f.new) },
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, 3000, test.change)
			for i := range 3000 {
				f.pod(fmt.Sprintf("%05d", i), test.pods(f, i))
			}
			for b.Loop() {
				f.plan(b)
			}
		})
	}
}

// A client that writes its whole template removes the defaults that OpenKruise's webhook stored.
func TestDefaultsOfTheTemplateChangeNoPod(t *testing.T) {
	for name, test := range map[string]struct {
		strategy func(*v1alpha1.CloneSet)
		image    string
		want     []string
	}{
		"nothing else changes":           {strategy: func(*v1alpha1.CloneSet) {}, image: "app:2"},
		"in place, nothing else changes": {strategy: inPlace, image: "app:2"},
		"in place, new image":            {strategy: inPlace, image: "app:3", want: []string{"~a Updating"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 1, test.strategy, unavailable(number(1)))
			short := f.set.Spec.Template
			f.set.Spec.Template = *template.WithDefaults(&short)
			result, err := revision.Plan(revision.Owner{Object: f.set, Kind: Kind(), Template: &f.set.Spec.Template}, nil, 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			f.old, f.new = result.Update, result.Update
			f.set.Status.CurrentRevision = f.new.Name
			f.pod("a", f.ofRevision(f.new))
			f.set.Spec.Template = short
			f.set.Spec.Template.Spec.Containers[0].Image = test.image
			f.wantSteps(t, test.want...)
		})
	}
}
