// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/daemonset"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
)

// fixture is a set with a ready pod of its first revision on each of three nodes, and a template that has changed since.
type fixture struct {
	slots *daemonset.Slots
	set   *v1alpha1.DaemonSet
	pods  map[string]*corev1.Pod
	in    planning.Input
}

// plan plans a step, and follows what the API server makes of it: revisions are created, and pods are created and deleted.
func (f *fixture) plan(t *testing.T) daemonset.Output {
	t.Helper()
	out, err := f.slots.Plan(f.set, f.in)
	if err != nil {
		t.Fatal(err)
	}
	if out.CreateRevision != nil {
		out.CreateRevision.Namespace = f.set.Namespace
		f.in.Revisions = append(f.in.Revisions, out.CreateRevision)
	}
	f.set.Status = out.Status
	return out
}

func (f *fixture) change(pod *corev1.Pod, change func(*corev1.Pod)) {
	changed := pod.DeepCopy()
	changed.ResourceVersion += "0"
	change(changed)
	f.slots.Pod(pod, changed)
	f.pods[changed.Name] = changed
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{pods: map[string]*corev1.Pod{}, set: &v1alpha1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent", UID: "set", Generation: 1},
		Spec: v1alpha1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "agent:1"}}},
			},
			UpdateStrategy: v1alpha1.DaemonSetUpdateStrategy{RollingUpdate: &v1alpha1.RollingUpdateDaemonSet{}},
		},
	}}
	f.in.Now, f.in.Guards = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), builders.Guards()
	f.slots = daemonset.NewSlots(daemonset.Cache{
		Nodes: func() (nodes []*corev1.Node) {
			for i := range 3 {
				nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}})
			}
			return nodes
		},
		Pods:    func(owner.Key) []*corev1.Pod { return slices.Collect(maps.Values(f.pods)) },
		Version: func() string { return "1" },
	})
	inPlace(f.set)
	created := f.plan(t).Creates
	f.set.Spec.UpdateStrategy.RollingUpdate.Type = ""
	for i, pod := range created {
		pod.UID, pod.ResourceVersion, pod.Spec.NodeName = types.UID(pod.Name), "10", fmt.Sprintf("node-%d", i)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.in.Now)},
			{Type: pub.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.in.Now)},
		}
		f.slots.Pod(nil, pod)
		f.pods[pod.Name] = pod
	}
	foreign := f.pods[slices.Sorted(maps.Keys(f.pods))[0]].DeepCopy()
	foreign.Namespace, foreign.UID, foreign.OwnerReferences[0].APIVersion = "hostile", "foreign", "apps.kruise.io/v9"
	f.slots.Pod(nil, foreign)
	if out := f.plan(t); len(out.Deletes) > 0 {
		t.Errorf("a pod of another namespace is a second one on its node: %v", out.Deletes)
	}
	f.set.Generation++
	f.set.Spec.Template.Spec.Containers[0].Image = "agent:2"
	return f
}

// TestProgressing checks why the condition says that nothing, or not more, happens.
func TestProgressing(t *testing.T) {
	update := func(change func(*v1alpha1.RollingUpdateDaemonSet)) func(*fixture) {
		return func(f *fixture) { change(f.set.Spec.UpdateStrategy.RollingUpdate) }
	}
	for name, tc := range map[string]struct {
		change func(*fixture)
		after  time.Duration
		status corev1.ConditionStatus
		reason string
		says   string
	}{
		"updating": {change: func(*fixture) {}, status: "True", reason: "Updating"},
		"updated":  {change: func(f *fixture) { f.set.Spec.Template.Spec.Containers[0].Image = "agent:1" }, status: "True", reason: "Updated"},
		"paused": {
			change: update(func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused = new(true) }), status: "False", reason: "Paused", says: "3 nodes",
		},
		"on delete": {
			change: func(f *fixture) { f.set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteDaemonSetStrategyType },
			status: "False", reason: "OnDelete", says: "when their pods are deleted",
		},
		"partition": {
			change: update(func(r *v1alpha1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromString("100%")) }),
			status: "False", reason: "Partition", says: "keeps 3 nodes",
		},
		"a hook holds the last pod that the partition permits": {
			change: func(f *fixture) {
				f.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(2))
				f.set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
				for _, pod := range f.pods {
					if pod.Spec.NodeName == "node-2" {
						f.change(pod, func(pod *corev1.Pod) {
							pod.Labels["hold"], pod.Labels[pub.LifecycleStateKey] = "yes", string(pub.LifecycleStatePreparingDelete)
						})
					}
				}
			},
			status: "True", reason: "Updating",
		},
		"selector": {
			change: update(func(r *v1alpha1.RollingUpdateDaemonSet) {
				r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			}),
			status: "False", reason: "NodeSelector", says: "does not match 3 nodes",
		},
		"recreated": {
			change: func(f *fixture) {
				f.set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.InplaceRollingUpdateType
				f.set.Spec.Template.Spec.HostNetwork = true
			},
			status: "True", reason: "Updating", says: "an update in place is not possible: spec.hostNetwork changes",
		},
		"blocked": {
			// The first pod is deleted, and does not end.
			change: func(f *fixture) {
				for _, pod := range f.pods {
					if pod.Spec.NodeName == "node-2" {
						f.change(pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(f.in.Now)) })
					}
				}
			},
			after: 61 * time.Second, status: "False", reason: "BlockedByUnavailable", says: "node-2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.change(f)
			out := f.plan(t)
			if tc.after > 0 {
				if out.RequeueAfter <= 0 || out.RequeueAfter > tc.after {
					t.Errorf("the next step is after %v, want at most %v", out.RequeueAfter, tc.after)
				}
				f.in.Now = f.in.Now.Add(tc.after)
				out = f.plan(t)
			}
			i := slices.IndexFunc(out.Status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == v1alpha1.DaemonSetProgressing })
			if c := out.Status.Conditions[i]; c.Status != tc.status || c.Reason != tc.reason || !strings.Contains(c.Message, tc.says) {
				t.Errorf("condition %+v, want %s %s %q", c, tc.status, tc.reason, tc.says)
			}
		})
	}
}

// TestPodThatOthersDeleteIsPrepared checks that the program of the hook sees the deletion, and is told once.
func TestPodThatOthersDeleteIsPrepared(t *testing.T) {
	f := newFixture(t)
	f.set.Spec.Template.Spec.Containers[0].Image = "agent:1"
	f.set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{"example.com/drain"}}}
	f.plan(t)
	f.on("node-1", func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(f.in.Now)), []string{"example.com/drain"}
	})
	out := f.plan(t)
	if len(out.Patches) != 1 || *out.Patches[0].Labels[pub.LifecycleStateKey] != string(pub.LifecycleStatePreparingDelete) || len(out.Creates) > 0 {
		t.Fatalf("writes %+v, want the state PreparingDelete only", out.Actions)
	}
	f.on("node-1", func(pod *corev1.Pod) { pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStatePreparingDelete) })
	if out = f.plan(t); !out.Empty() {
		t.Errorf("writes %+v after the state is there, want none", out.Actions)
	}
}

// TestSuccessorsOfEndedPodsHaveNewNames ends a pod, its successor and so on, all in the same second. Each successor has a name of its own, and the ended
// pod is deleted when it exists.
func TestSuccessorsOfEndedPodsHaveNewNames(t *testing.T) {
	f := newFixture(t)
	f.set.Spec.Template.Spec.Containers[0].Image = "agent:1"
	f.plan(t)
	pod, names := f.pods[slices.Sorted(maps.Keys(f.pods))[0]], map[string]bool{}
	running := pod.Status.DeepCopy()
	for attempt := range 4 {
		f.change(pod, func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })
		f.in.Now = f.in.Now.Add(time.Minute)
		out := f.plan(t)
		if len(out.Creates) != 1 || len(out.Deletes) > 0 || names[out.Creates[0].Name] || out.Creates[0].Name == pod.Name {
			t.Fatalf("attempt %d: step %v, want a pod with another name", attempt, steps(&out))
		}
		again := f.plan(t)
		if len(again.Creates) > 0 && again.Creates[0].Name != out.Creates[0].Name {
			t.Errorf("attempt %d: repeated creation of pod %s, want %s", attempt, again.Creates[0].Name, out.Creates[0].Name)
		}
		next := out.Creates[0].DeepCopy()
		names[next.Name] = true
		next.Namespace, next.UID, next.ResourceVersion, next.Spec.NodeName = "ns", types.UID(next.Name), "11", pod.Spec.NodeName
		next.CreationTimestamp, next.Status = pod.CreationTimestamp, *running.DeepCopy()
		f.slots.Pod(nil, next)
		f.pods[next.Name] = next
		if attempt == 1 { // The successor ends before this one is deleted.
			pod = next
			continue
		}
		out = f.plan(t)
		if ended := []int{1, 0, 2, 1}[attempt]; len(out.Deletes) != ended || len(out.Creates) > 0 {
			t.Fatalf("attempt %d: step %v, want the deletion of %d ended pods", attempt, steps(&out), ended)
		}
		if !slices.ContainsFunc(out.Events, func(e planning.Event) bool {
			return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message(), "ended: Evicted.")
		}) {
			t.Errorf("attempt %d: events %+v, want one that says why the pod has ended", attempt, out.Events)
		}
		for _, d := range out.Deletes {
			f.slots.Pod(d.Pod, nil)
		}
		pod = next
	}
}
