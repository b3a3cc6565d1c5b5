// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/view"
	"github.com/seamark-dev/seamark/internal/view/gather"
	"github.com/seamark-dev/seamark/test/builders"
)

// store is a cache that counts the lists of pods and plans.
type store struct {
	marker *v1alpha1.PodProbeMarker
	pods   map[string]*corev1.Pod
	plans  map[string]*v1alpha1.NodePodProbe
	lists  int
}

func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	found := false
	switch object := object.(type) {
	case *v1alpha1.PodProbeMarker:
		if found = s.marker != nil; found {
			s.marker.DeepCopyInto(object)
		}
	case *corev1.Pod:
		if _, found = s.pods[key.Name]; found {
			s.pods[key.Name].DeepCopyInto(object)
		}
	case *v1alpha1.NodePodProbe:
		if _, found = s.plans[key.Name]; found {
			s.plans[key.Name].DeepCopyInto(object)
		}
	default:
		return fmt.Errorf("get of %T", object)
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return nil
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.PodProbeMarkerList:
		if s.marker != nil {
			list.Items = append(list.Items, *s.marker)
		}
	case *corev1.PodList:
		s.lists++
		for _, pod := range s.pods {
			list.Items = append(list.Items, *pod)
		}
	case *v1alpha1.NodePodProbeList:
		s.lists++
		for _, npp := range s.plans {
			list.Items = append(list.Items, *npp)
		}
	case *seamarkv1alpha1.ProbeReportList:
	default:
		return fmt.Errorf("list of %T", list)
	}
	return nil
}

// writes records the writes of the marker, and stores them.
type writes struct {
	*store
	statuses []string
	released bool
	// finalizers are the numbers of finalizers written.
	finalizers []int
	// stored is the resource version after the write of a status, if it changes.
	stored string
}

func (w *writes) Status(_ context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error) {
	for _, c := range status.Conditions {
		w.statuses = append(w.statuses, words(c))
	}
	w.marker.Status = status
	stored := marker.DeepCopy()
	stored.ResourceVersion = cmp.Or(w.stored, marker.ResourceVersion)
	return stored, nil
}

func (w *writes) Finalizers(_ context.Context, _ *v1alpha1.PodProbeMarker, finalizers []string) (string, error) {
	w.released = len(finalizers) == 0
	w.finalizers = append(w.finalizers, len(finalizers))
	return "1000", nil
}

// releasing is a reconciler with a deleted marker that sets the label web.
type releasing struct {
	*testing.T
	*writes
	r   *Reconciler
	now time.Time
	// markers is the queue of the reconciler. toMark and toPlan are those of the controllers that
	// write pods and plans.
	markers, toMark, toPlan controller.Queue
	events                  *record.FakeRecorder
}

func newQueue(t *testing.T) controller.Queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

func newReleasing(t *testing.T, pods ...*corev1.Pod) *releasing {
	t.Helper()
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")).Deleting().Build()
	w := &writes{store: &store{marker: marker, pods: map[string]*corev1.Pod{}, plans: map[string]*v1alpha1.NodePodProbe{}}}
	for _, pod := range pods {
		w.pods[pod.Name] = pod
	}
	f := &releasing{
		T: t, writes: w, now: time.Unix(1_700_000_000, 0), events: record.NewFakeRecorder(100),
		markers: newQueue(t), toMark: newQueue(t), toPlan: newQueue(t),
	}
	podInbox, nodeInbox := &controller.Inbox{}, &controller.Inbox{}
	podInbox.Attach(f.toMark)
	nodeInbox.Attach(f.toPlan)
	f.r = New(Options{
		Reader: gather.Reader{
			Client: w.store, Compiler: plan.NewCompiler(), Options: view.Options{Defaults: plan.KubernetesDefaults()},
		},
		Markers: w, Pods: podInbox, Plans: nodeInbox, Refusals: &controller.Refusals{}, Recorder: f.events,
		Metrics: metrics.New(prometheus.NewRegistry()), Now: func() time.Time { return f.now },
	})
	return f
}

func (f *releasing) reconcile() time.Duration {
	f.Helper()
	result, err := f.r.Reconcile(f.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}})
	if err != nil {
		f.Fatal(err)
	}
	return result.RequeueAfter
}

// update replaces the pod and runs the handler, and reports whether it enqueued the marker.
func (f *releasing) update(pod *corev1.Pod) bool {
	f.Helper()
	before := f.pods[pod.Name]
	f.pods[pod.Name] = pod
	f.r.podEvents().Update(f.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: pod}, f.markers)
	return drain(f.markers) > 0
}

// remove deletes the pod and runs the handler.
func (f *releasing) remove(pod string) {
	f.Helper()
	before := f.pods[pod]
	delete(f.pods, pod)
	f.r.podEvents().Delete(f.Context(), event.TypedDeleteEvent[*corev1.Pod]{Object: before}, f.markers)
}

func drain(q controller.Queue) int {
	n := q.Len()
	for range n {
		item, _ := q.Get()
		q.Done(item)
	}
	return n
}

const webEntry = `{"f:metadata":{"f:labels":{"f:web":{}}}}`

func marked(name string) *corev1.Pod {
	return builders.Pod("ns", name).Label("app", "game").Label("web", "1").ManagedFields("seamark", "status", webEntry).Build()
}

func unmarked(name string) *corev1.Pod { return builders.Pod("ns", name).Label("app", "game").Build() }

func planned(node, probe string) *v1alpha1.NodePodProbe {
	npp := &v1alpha1.NodePodProbe{Spec: v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "ns", Name: "a", Probes: []v1alpha1.ContainerProbe{{Name: probe}},
	}}}}
	npp.Name = node
	return npp
}

// A marker with many pods lists them twice, whatever the order in which they become clean.
func TestReleaseListsPodsTwice(t *testing.T) {
	const count = 500
	f := newReleasing(t)
	for i := range count {
		f.pods[fmt.Sprintf("p%03d", i)] = marked(fmt.Sprintf("p%03d", i))
	}
	f.plans["n"], f.plans["other"] = planned("n", "web#p"), planned("other", "api#p")
	f.reconcile()
	if pods, plans := drain(f.toMark), drain(f.toPlan); pods != count || plans != 1 {
		t.Fatalf("enqueued %d pods and %d plans, want %d and 1", pods, plans, count)
	}
	for i := range count {
		if !f.update(unmarked(fmt.Sprintf("p%03d", i))) {
			t.Fatalf("pod %d does not enqueue the marker", i)
		}
		f.now = f.now.Add(time.Millisecond)
		f.reconcile()
	}
	if f.released {
		t.Fatal("released while a plan has a probe of the marker")
	}
	before, after := f.plans["n"], planned("n", "api#p")
	after.Generation++
	f.plans["n"] = after
	f.r.planEvents().Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.NodePodProbe]{ObjectOld: before, ObjectNew: after}, f.markers)
	if drain(f.markers) == 0 {
		t.Error("the plan does not enqueue the marker")
	}
	f.reconcile()
	if !f.released || f.lists != 4 {
		t.Errorf("released %t after %d lists of pods and plans, want a release after 4", f.released, f.lists)
	}
	if len(f.statuses) != 0 {
		t.Errorf("wrote the status of a marker whose deletion makes progress: %q", f.statuses)
	}
}

// A pod whose writes are refused is checked ever more rarely, and the status and events name it.
func TestReleaseOfPodThatRefusesWrites(t *testing.T) {
	f := newReleasing(t, marked("a"), marked("b"))
	f.reconcile()
	f.update(unmarked("a"))
	denied := errors.New("apply marks: " + strings.Repeat("denied ", 100))
	f.r.Refusals.Note(types.NamespacedName{Namespace: "ns", Name: "b"}, denied)
	start, wait := f.now, f.reconcile()
	drain(f.toMark)
	reconciles := 0
	for f.now.Sub(start) < 10*time.Minute {
		f.now = f.now.Add(wait)
		wait = f.reconcile()
		reconciles++
	}
	if reconciles > 20 || f.lists != 2 {
		t.Errorf("%d reconciles with %d lists in 10 minutes, want at most 20 with 2", reconciles, f.lists)
	}
	if n := drain(f.toMark); n != 0 {
		t.Errorf("enqueued a pod that its controller retries")
	}
	if len(f.statuses) != 2 {
		t.Fatalf("wrote %d statuses, want 2: what blocks, then how to proceed:\n%q", len(f.statuses), f.statuses)
	}
	const want = "MarksRemoved False WriteFailed: Pods still have marks of the marker (1, such as b). The last write to pod b failed: apply marks: denied"
	if !strings.HasPrefix(f.statuses[0], want) || strings.Contains(f.statuses[0], "kubectl") {
		t.Errorf("first status %q, want %q without advice", f.statuses[0], want)
	}
	if !strings.HasPrefix(f.statuses[1], want) || !strings.Contains(f.statuses[1], "kubectl label pod b -n ns web-") {
		t.Errorf("second status %q, want %q with advice", f.statuses[1], want)
	}
	if len(f.events.Events) != 2 {
		t.Errorf("%d events, want 2", len(f.events.Events))
	}
	if !f.update(unmarked("b")) {
		t.Error("the pod does not enqueue the marker")
	}
	f.reconcile()
	if !f.released {
		t.Error("not released after the pod was written")
	}
}

// A pod without an event and without a failed write is enqueued again.
func TestReleaseEnqueuesPodsAgain(t *testing.T) {
	f := newReleasing(t, marked("a"))
	wait := f.reconcile()
	drain(f.toMark)
	f.now = f.now.Add(wait)
	f.reconcile()
	if n := drain(f.toMark); n != 1 {
		t.Errorf("enqueued %d pods after %s without progress, want 1", n, wait)
	}
}

// The pod changes between the lists and the event handlers in every order.
func TestReleaseWhilePodsChange(t *testing.T) {
	cases := map[string]struct {
		change   func(f *releasing)
		released bool
	}{
		"pod becomes clean":           {change: func(f *releasing) { f.update(unmarked("a")) }, released: true},
		"pod is deleted":              {change: func(f *releasing) { f.remove("a") }, released: true},
		"pod ends":                    {change: func(f *releasing) { f.update(builders.Pod("ns", "a").Terminating().Build()) }, released: true},
		"pod changes otherwise":       {change: func(f *releasing) { f.update(marked("a")) }},
		"other pod is marked late":    {change: func(f *releasing) { f.update(unmarked("a")); f.pods["b"] = marked("b") }},
		"recreated with the same key": {change: func(f *releasing) { f.remove("a"); f.pods["a"] = marked("a") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newReleasing(t, marked("a"))
			f.reconcile()
			tc.change(f)
			f.reconcile()
			if f.released != tc.released {
				t.Errorf("released %t, want %t", f.released, tc.released)
			}
		})
	}
}

func TestReleaseWithoutRemains(t *testing.T) {
	stray := builders.Pod("ns", "a").Label("stray", "1").
		ManagedFields("seamark", "status", `{"f:metadata":{"f:labels":{"f:stray":{}}}}`).Build()
	f := newReleasing(t, stray, unmarked("b"))
	f.reconcile()
	if !f.released {
		t.Error("not released")
	}
}

func TestOutdatedIgnoresConflicts(t *testing.T) {
	conflict := fmt.Errorf("write status: %w", apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("changed")))
	if result, err := outdated(conflict); err != nil || result.RequeueAfter != 0 {
		t.Errorf("result %+v, error %v; want none, because the change enqueues the marker", result, err)
	}
	other := errors.New("refused")
	if _, err := outdated(other); !errors.Is(err, other) {
		t.Errorf("error %v, want %v", err, other)
	}
}
