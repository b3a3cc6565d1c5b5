// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestNewPods(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	cases := map[string]struct {
		pod     *corev1.Pod
		initial bool
		want    bool
	}{
		"exists at the start":         {pod: pod().Build(), initial: true},
		"exists at the start, marked": {pod: pod().ManagedFields("seamark", "status", entry).Build(), initial: true, want: true},
		"not bound":                   {pod: pod().Node("").Build()},
		"possibly already reported":   {pod: pod().Build(), want: true},
		"already marked":              {pod: pod().ManagedFields("seamark", "status", entry).Build(), want: true},
		"already ended":               {pod: pod().Phase(corev1.PodFailed).Build()},
		"not initialized":             {pod: pod().Initialized(corev1.ConditionFalse).Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := fakeapi.Queue(t)
			created := event.TypedCreateEvent[*corev1.Pod]{Object: tc.pod, IsInInitialList: tc.initial}
			reconciler(t, &recorded{}).podEvents().Create(t.Context(), created, q)
			expect.Equal(t, "enqueued", tc.want, q.Len() > 0)
		})
	}
}

// A new leader gets all ProbeReports and NodePodProbes at once. It enqueues only pods whose marks may
// differ, and measures no latency.
func TestInitialReports(t *testing.T) {
	state := stateSince(v1alpha1.ProbeSucceeded, 1)
	cases := map[string]struct {
		slice *seamarkv1alpha1.ProbeReport
		npp   *v1alpha1.NodePodProbe
		want  int
	}{
		"states":                    {slice: inSlice("node-1.0", state), want: 1},
		"no states":                 {slice: inSlice("node-1.0")},
		"states in the status":      {npp: inStatus(false, state), want: 1},
		"status is kept up to date": {npp: inStatus(true, state)},
		"no states in the status":   {npp: inStatus(true)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := fakeapi.Queue(t)
			r := reconciler(t, &recorded{})
			if tc.slice != nil {
				r.sliceEvents().Create(t.Context(), event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport]{Object: tc.slice, IsInInitialList: true}, q)
			} else {
				r.statusEvents().Create(t.Context(), event.TypedCreateEvent[*v1alpha1.NodePodProbe]{Object: tc.npp, IsInInitialList: true}, q)
			}
			expect.Equal(t, "pods enqueued", tc.want, q.Len())
			if r.reportedAt.Len() > 0 {
				t.Error("the latency of an initial report is measured")
			}
		})
	}
}

// In a burst, the reconcile that follows a write is queued behind all other pods.
func TestWriteIsForgottenWhenTheCacheHasIt(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	for version, want := range map[string]bool{"6": true, "7": false, "8": false} {
		q := fakeapi.Queue(t)
		r := reconciler(t, &recorded{})
		r.expectations.Expect(key, "uid-a", "7", nil)
		before, after := builders.Pod("ns", "a").Build(), builders.Pod("ns", "a").Build()
		before.ResourceVersion, after.ResourceVersion = "5", version
		r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}, q)
		if _, pending := r.expectations.Pending(key, "uid-a", "5"); pending != want {
			t.Errorf("cache with version %s: write of version 7 is remembered: %t, want %t", version, pending, want)
		}
	}
}

// A deletion is handled while a reconcile of the pod runs, which then remembers the pod again.
func TestDeletedPodIsForgotten(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	q := fakeapi.Queue(t)
	r := reconciler(t, &recorded{})
	r.podEvents().Delete(t.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: builders.Pod("ns", "a").Build()}, q)
	r.limits.wait(key, r.Now(), func() []string { return nil })
	r.outdated.Set(key, "1")
	r.refused.Set(key, refused{uid: "uid-a"})
	r.expectations.Expect(key, "uid-a", "1", nil)
	r.Problems.Set(key, map[types.NamespacedName]problems.Mark{{Namespace: "ns", Name: "web"}: {Limited: problems.LimitLoop}})
	drain(t, r, q)
	if r.limits.pods.Len()+r.outdated.Len()+r.refused.Len() > 0 {
		t.Error("a deleted pod is remembered")
	}
	if found := r.Problems.OfMarker(types.NamespacedName{Namespace: "ns", Name: "web"}); len(found) > 0 {
		t.Errorf("problems %v of a deleted pod remain", found)
	}
}

// The cache can miss the deletion of a pod that is recreated under the same name.
func TestReplacedPodHasALimitOfItsOwn(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	q := fakeapi.Queue(t)
	r := reconciler(t, &recorded{})
	r.limits.wait(key, r.Now(), func() []string { return nil })
	before, after := builders.Pod("ns", "a").Build(), builders.Pod("ns", "a").Build()
	after.UID = "uid-b"
	r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}, q)
	if r.limits.pods.Len() > 0 {
		t.Error("the new pod has the limit of the old one")
	}
}

func TestNewNodes(t *testing.T) {
	pod := builders.Pod("ns", "a").Node("node-1").Build()
	cases := map[string]struct {
		kind string
		want int
	}{
		"virtual node": {kind: "virtual-kubelet", want: 1},
		"kubelet node": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := fakeapi.Queue(t)
			r := reconciler(t, &recorded{})
			r.Reader.Client = fakeapi.Client(t, pod).
				WithIndex(pod, gather.NodeNameField, func(client.Object) []string { return []string{"node-1"} }).Build()
			node := gather.NewNode()
			node.Name, node.Labels = "node-1", map[string]string{v1alpha1.NodeTypeLabel: tc.kind}
			r.nodeEvents().Create(t.Context(), event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: node, IsInInitialList: true}, q)
			expect.Equal(t, "pods enqueued", tc.want, q.Len())
		})
	}
}
