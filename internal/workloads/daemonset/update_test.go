// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
)

// on changes the pod of a node.
func (f *fixture) on(node string, change func(*corev1.Pod)) {
	for _, pod := range f.pods {
		if nodefit.Target(pod) == node {
			f.change(pod, change)
		}
	}
}

// steps returns what a step does with pods: "~" for a patch, "-" for a deletion and "+" for a creation, and the node.
func steps(out *daemonset.Output) []string {
	var all []string
	for i := range out.Patches {
		all = append(all, "~"+nodefit.Target(out.Patches[i].Pod))
	}
	for _, d := range out.Deletes {
		all = append(all, "-"+nodefit.Target(d.Pod))
	}
	for _, pod := range out.Creates {
		all = append(all, "+"+nodefit.Target(pod))
	}
	slices.Sort(all)
	return all
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { planning.Condition(pod, kind).Status = status }
}

func inPlace(set *v1alpha1.DaemonSet) {
	set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.InplaceRollingUpdateType
}

// guarded sets the label that a guard selects.
func guarded(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[builders.GuardLabel] = value }
}

// TestUpdate checks the first step of the update of three nodes, of which one may be unavailable.
func TestUpdate(t *testing.T) {
	ungated := func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates, pod.Status.Conditions = nil, pod.Status.Conditions[:1]
	}
	updating := func(pod *corev1.Pod) { pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStateUpdating) }
	infeasible := func(f *fixture, change func(*v1alpha1.RollingUpdateDaemonSet)) {
		f.on("node-0", f.resized(t, corev1.PodReasonInfeasible))
		change(f.set.Spec.UpdateStrategy.RollingUpdate)
	}
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   []string
	}{
		"a refused resize": {
			change: func(f *fixture) { infeasible(f, func(*v1alpha1.RollingUpdateDaemonSet) {}) }, want: []string{"-node-0"},
		},
		"a deferred resize": {change: func(f *fixture) { f.on("node-0", f.resized(t, corev1.PodReasonDeferred)) }},
		"two refused resizes of pods that serve": {
			change: func(f *fixture) {
				infeasible(f, func(*v1alpha1.RollingUpdateDaemonSet) {})
				f.on("node-1", f.resized(t, corev1.PodReasonInfeasible))
			},
			want: []string{"-node-1"},
		},
		"a refused resize while another pod is down": {change: func(f *fixture) {
			infeasible(f, func(*v1alpha1.RollingUpdateDaemonSet) {})
			f.updated(t, "node-1")
			f.on("node-1", condition(corev1.PodReady, corev1.ConditionFalse))
		}},
		"a refused resize with a surge": {
			change: func(f *fixture) {
				infeasible(f, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Type = v1alpha1.SurgingRollingUpdateType })
				f.updated(t, "node-1", "node-2")
			},
			want: []string{"-node-0"},
		},
		"a rollback while a resize is deferred": {
			change: func(f *fixture) {
				f.on("node-0", f.resized(t, corev1.PodReasonDeferred))
				f.updated(t, "node-1", "node-2")
				f.set.Spec.Template.Spec.Containers[0].Image = "agent:1"
			},
			want: []string{"~node-0"},
		},
		"another template while two resizes are deferred": {
			change: func(f *fixture) {
				f.on("node-0", f.resized(t, corev1.PodReasonDeferred))
				f.on("node-1", f.resized(t, corev1.PodReasonDeferred))
				f.updated(t, "node-2")
				f.set.Spec.Template.Spec.Containers[0].Image = "agent:3"
			},
			want: []string{"~node-1"},
		},
		"a refused resize of a pod that is not ready": {
			change: func(f *fixture) {
				infeasible(f, func(*v1alpha1.RollingUpdateDaemonSet) {})
				f.on("node-1", f.resized(t, corev1.PodReasonInfeasible))
				f.on("node-0", condition(corev1.PodReady, corev1.ConditionFalse))
			},
			want: []string{"-node-0"},
		},
		"a refused resize while the update is paused": {
			change: func(f *fixture) { infeasible(f, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused = new(true) }) },
		},
		"a refused resize below the partition": {
			change: func(f *fixture) {
				infeasible(f, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromInt32(3)) })
			},
		},
		"a refused resize on a node that the update does not reach": {change: func(f *fixture) {
			infeasible(f, func(r *v1alpha1.RollingUpdateDaemonSet) {
				r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			})
		}},
		"in place": {change: func(*fixture) {}, want: []string{"~node-2"}},
		"pods without the gate are recreated": {
			change: func(f *fixture) {
				for i := range 3 {
					f.on(fmt.Sprintf("node-%d", i), ungated)
				}
			},
			want: []string{"-node-2"},
		},
		"in place on another node than the guarded one": {change: func(f *fixture) { f.on("node-2", guarded("update")) }, want: []string{"~node-1"}},
		"in place where a guard protects from deletion": {change: func(f *fixture) { f.on("node-2", guarded("delete")) }, want: []string{"~node-2"}},
		"recreation on another node than the guarded one": {
			change: func(f *fixture) {
				f.on("node-2", guarded("delete"))
				f.set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.StandardRollingUpdateType
			},
			want: []string{"-node-1"},
		},
		"a surge on another node than the guarded one": {
			change: func(f *fixture) {
				f.on("node-2", guarded("delete"))
				f.set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.SurgingRollingUpdateType
				f.set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
			},
			want: []string{"+node-1"},
		},
		"a guarded pod that is not ready": {
			change: func(f *fixture) {
				f.on("node-0", guarded("update"))
				f.on("node-0", condition(corev1.PodReady, corev1.ConditionFalse))
			},
		},
		"a refused resize of a guarded pod": {change: func(f *fixture) {
			infeasible(f, func(*v1alpha1.RollingUpdateDaemonSet) {})
			f.on("node-0", guarded("delete"))
		}},
		// Another update followed before the first one was done.
		"an update in progress counts, although the pod is ready": {
			change: func(f *fixture) { f.on("node-0", updating) }, want: []string{"~node-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			inPlace(f.set)
			tc.change(f)
			f.set.Generation++
			out := f.plan(t)
			if got := steps(&out); !slices.Equal(got, tc.want) {
				t.Errorf("step %v, want %v", got, tc.want)
			}
		})
	}
}

// The API server has accepted that the pod is not ready, and refused its image: only the image is written again, so that
// readiness does not flap. If the update is stopped, the pod becomes ready again.
func TestInterruptedUpdates(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RollingUpdateDaemonSet)
		image  string
		ready  bool
	}{
		"goes on":   {change: func(*v1alpha1.RollingUpdateDaemonSet) {}, image: "agent:2"},
		"paused":    {change: func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused = new(true) }, ready: true},
		"partition": {change: func(r *v1alpha1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromInt32(3)) }, ready: true},
		"surge":     {change: func(r *v1alpha1.RollingUpdateDaemonSet) { r.Type = v1alpha1.SurgingRollingUpdateType }, ready: true},
		"other nodes": {change: func(r *v1alpha1.RollingUpdateDaemonSet) {
			r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			inPlace(f.set)
			tc.change(f.set.Spec.UpdateStrategy.RollingUpdate)
			f.on("node-0", condition(corev1.PodReady, corev1.ConditionFalse))
			f.on("node-0", condition(pub.InPlaceUpdateReady, corev1.ConditionFalse))
			out := f.plan(t)
			if len(out.Patches) != 1 || nodefit.Target(out.Patches[0].Pod) != "node-0" {
				t.Fatalf("step %v, want a patch of the pod", steps(&out))
			}
			patch := out.Patches[0]
			ready := len(patch.Conditions) == 1 && patch.Conditions[0].Status == corev1.ConditionTrue
			if patch.Images["main"] != tc.image || ready != tc.ready || !ready && len(patch.Conditions) > 0 {
				t.Errorf("images %v and conditions %+v", patch.Images, patch.Conditions)
			}
		})
	}
}

// updated makes the pods of the nodes ones of the update revision.
func (f *fixture) updated(t *testing.T, nodes ...string) {
	t.Helper()
	hash := f.plan(t).Status.DaemonSetHash
	for _, node := range nodes {
		f.on(node, func(pod *corev1.Pod) { pod.Labels["controller-revision-hash"] = hash })
	}
}

// resized returns what makes a pod one of the update revision whose resize is pending for the reason.
func (f *fixture) resized(t *testing.T, reason string) func(*corev1.Pod) {
	t.Helper()
	state, err := json.Marshal(pub.InPlaceUpdateState{UpdateResources: true})
	if err != nil {
		t.Fatal(err)
	}
	hash := f.plan(t).Status.DaemonSetHash
	return func(pod *corev1.Pod) {
		pod.Labels[pub.LifecycleStateKey], pod.Labels["controller-revision-hash"] = string(pub.LifecycleStateUpdating), hash
		pod.Annotations[pub.InPlaceUpdateStateKey] = string(state)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: "no room",
		})
	}
}

// TestStuckResizesAreReported checks that a condition and one event name a pod and the reason.
func TestStuckResizesAreReported(t *testing.T) {
	f := newFixture(t)
	f.on("node-0", f.resized(t, corev1.PodReasonDeferred))
	out := f.plan(t)
	i := slices.IndexFunc(out.Status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Reason == "ResizeStuck" })
	if i < 0 || out.Status.Conditions[i].Type != "FailedUpdate" || !strings.Contains(out.Status.Conditions[i].Message, "the resize is deferred: no room") {
		t.Fatalf("conditions %+v, want ResizeStuck with the reason", out.Status.Conditions)
	}
	if len(out.StatusEvents) != 1 || out.StatusEvents[0].Reason != "ResizeStuck" {
		t.Errorf("events %+v, want one", out.StatusEvents)
	}
	if out = f.plan(t); len(out.StatusEvents) != 0 {
		t.Errorf("events %+v in the second step, want none", out.StatusEvents)
	}
	f.on("node-0", func(pod *corev1.Pod) { condition(corev1.PodResizePending, corev1.ConditionFalse)(pod) })
	if c := f.plan(t).Status.Conditions[i]; c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v when the resize is done, want False", c)
	}
}

// A readiness gate costs a write of the status of each pod.
func TestOnlyUpdatesInPlaceNeedTheReadinessGate(t *testing.T) {
	for _, kind := range []v1alpha1.RollingUpdateType{
		"", v1alpha1.StandardRollingUpdateType, v1alpha1.SurgingRollingUpdateType, v1alpha1.InplaceRollingUpdateType,
	} {
		f := newFixture(t)
		f.set.Spec.UpdateStrategy.RollingUpdate.Type = kind
		for _, pod := range f.pods {
			f.slots.Pod(pod, nil)
		}
		clear(f.pods)
		out := f.plan(t)
		if len(out.Creates) != 3 {
			t.Fatalf("step %v, want 3 pods", steps(&out))
		}
		for _, pod := range out.Creates {
			if got := planning.HasGate(pod, pub.InPlaceUpdateReady); got != (kind == v1alpha1.InplaceRollingUpdateType) {
				t.Errorf("type %q: readiness gates %v", kind, pod.Spec.ReadinessGates)
			}
		}
	}
}

// TestPercentages checks how percentages of three nodes are rounded: maxUnavailable and maxSurge up, burstReplicas down.
func TestPercentages(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.DaemonSet)
		steps  int
	}{
		"maxUnavailable": {func(set *v1alpha1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("34%"))
		}, 2},
		"maxSurge": {func(set *v1alpha1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromString("34%"))
		}, 2},
		"burstReplicas": {func(set *v1alpha1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(3))
			set.Spec.BurstReplicas = new(intstr.FromString("66%"))
		}, 1},
		"burstReplicas, at least 1": {func(set *v1alpha1.DaemonSet) {
			set.Spec.BurstReplicas = new(intstr.FromString("1%"))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.change(f.set)
			out := f.plan(t)
			if got := steps(&out); len(got) != tc.steps {
				t.Errorf("step %v, want %d pods", got, tc.steps)
			}
		})
	}
}
