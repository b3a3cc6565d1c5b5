// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// node returns a node whose condition Ready became False this long after its creation.
func node(name string, notReadySince time.Duration) *corev1.Node {
	created := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(created.Add(notReadySince)),
		}}},
	}
}

// tainted returns a node with a taint that the template does not tolerate.
func tainted(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}},
	}}
}

func TestNodesThatAreNotReady(t *testing.T) {
	for name, tc := range map[string]struct {
		since time.Duration
		want  []string
	}{
		"a node that joins does not use up maxUnavailable":              {since: 0, want: []string{"+node-3", "-node-2"}},
		"a node that is not ready any more, and has no pod, uses it up": {since: time.Hour, want: []string{"+node-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.slots.Node(nil, node("node-3", tc.since))
			out := f.plan(t)
			if got := steps(&out); !slices.Equal(got, tc.want) {
				t.Errorf("step %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNodeThatBecomesReadyCounts(t *testing.T) {
	f := newFixture(t)
	joins, ready := node("node-3", 0), node("node-3", 0)
	f.slots.Node(nil, joins)
	f.plan(t)
	ready.Status.Conditions[0].Status = corev1.ConditionTrue
	if keys := f.slots.Node(joins, ready); len(keys) != 1 {
		t.Fatalf("the event plans the sets %v, want one", keys)
	}
	out := f.plan(t)
	if got, want := steps(&out), []string{"+node-3"}; !slices.Equal(got, want) {
		t.Errorf("step %v, want %v", got, want)
	}
}

// The pod was to be updated, and its node does not fit any more: it would not be created again.
func TestPreparedPodOfANodeThatDoesNotFitStays(t *testing.T) {
	f := newFixture(t)
	f.plan(t)
	f.on("node-2", func(pod *corev1.Pod) { pod.Labels[pub.LifecycleStateKey] = string(pub.LifecycleStatePreparingDelete) })
	f.slots.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}, tainted("node-2"))
	out := f.plan(t)
	if got, want := steps(&out), []string{"-node-1", "~node-2"}; !slices.Equal(got, want) {
		t.Fatalf("step %v, want %v", got, want)
	}
	if got := out.Patches[0].Labels[pub.LifecycleStateKey]; got == nil || *got != string(pub.LifecycleStateNormal) {
		t.Errorf("patch %+v, want the state Normal", out.Patches[0])
	}
}

func TestOldPodsOfNodesThatDoNotFitAreReported(t *testing.T) {
	f := newFixture(t)
	f.updated(t, "node-0", "node-1")
	f.slots.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}, tainted("node-2"))
	out := f.plan(t)
	if got := steps(&out); len(got) > 0 {
		t.Errorf("step %v, want none", got)
	}
	i := slices.IndexFunc(out.Status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == v1alpha1.DaemonSetProgressing })
	want := "1 nodes that no longer fit have pods of another revision, which are not updated."
	if c := out.Status.Conditions[i]; c.Status != corev1.ConditionFalse || c.Reason != "NodeDoesNotFit" || c.Message != want {
		t.Errorf("condition %+v, want %q", c, want)
	}
}

// The kubelet refuses the new pod of a surge, for example because a port is in use: the old pod stays, and the node does not
// get a further pod at once.
func TestRefusedPodOfASurgeReplacesNoPod(t *testing.T) {
	f := newFixture(t)
	f.set.Spec.UpdateStrategy.RollingUpdate.Type = v1alpha1.SurgingRollingUpdateType
	out := f.plan(t)
	if got, want := steps(&out), []string{"+node-2"}; !slices.Equal(got, want) {
		t.Fatalf("step %v, want %v", got, want)
	}
	for attempt := range 3 {
		refused := out.Creates[0].DeepCopy()
		refused.Namespace, refused.UID, refused.Spec.NodeName = f.set.Namespace, "refused", "node-2"
		refused.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodePorts"}
		f.slots.Pod(nil, refused)
		f.in.Now = f.in.Now.Add(time.Hour)
		deleted := f.plan(t)
		if len(deleted.Deletes) != 1 || deleted.Deletes[0].Pod.UID != refused.UID || len(deleted.Creates) > 0 {
			t.Fatalf("attempt %d: step %v, want only the deletion of the refused pod", attempt, steps(&deleted))
		}
		f.slots.Pod(refused, nil)
		if out = f.plan(t); !slices.Equal(steps(&out), []string{"+node-2"}) {
			t.Fatalf("attempt %d: step %v, want a further attempt", attempt, steps(&out))
		}
	}
}

// The node gets no successor, and so keeps no ended pod.
func TestEndedPodOfANodeThatDoesNotFitIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.set.Spec.Template.Spec.Containers[0].Image = "agent:1"
	f.plan(t)
	f.on("node-2", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	f.slots.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-2"}}, tainted("node-2"))
	out := f.plan(t)
	if got, want := steps(&out), []string{"-node-2"}; !slices.Equal(got, want) {
		t.Errorf("step %v, want %v", got, want)
	}
}

// A creation that is refused for an hour is tried again in each step, and not after the back-off of pods that fail.
func TestRefusedSuccessorIsNoFailure(t *testing.T) {
	f := newFixture(t)
	f.set.Spec.Template.Spec.Containers[0].Image = "agent:1"
	f.plan(t)
	f.on("node-2", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	for attempt := range 60 {
		f.in.Now = f.in.Now.Add(time.Minute)
		if out := f.plan(t); len(out.Creates) != 1 {
			t.Fatalf("attempt %d: step %v, want the successor", attempt, steps(&out))
		}
	}
}
