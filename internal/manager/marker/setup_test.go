// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// store is a cache. It counts the lists of pods and plans, and the reads of the report of a node, which
// are as many as pods whose plan or marks are computed, and one per count.
type store struct {
	markers map[client.ObjectKey]*v1alpha1.PodProbeMarker
	pods    map[client.ObjectKey]*corev1.Pod
	plans   map[string]*v1alpha1.NodePodProbe
	slices  []seamarkv1alpha1.ProbeReport
	// planSlices are those of each node that is read.
	planSlices []seamarkv1alpha1.ProbePlan

	lists, computed int
}

func (s *store) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	npp, ok := object.(*v1alpha1.NodePodProbe)
	if !ok {
		return fmt.Errorf("get of %T", object)
	}
	s.computed++
	if s.plans[key.Name] == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	s.plans[key.Name].DeepCopyInto(npp)
	return nil
}

func (s *store) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	switch list := list.(type) {
	case *v1alpha1.PodProbeMarkerList:
		for key, marker := range s.markers {
			if key.Namespace == o.Namespace {
				list.Items = append(list.Items, *marker)
			}
		}
	case *corev1.PodList:
		s.lists++
		for key, pod := range s.pods {
			if key.Namespace == o.Namespace {
				list.Items = append(list.Items, *pod)
			}
		}
	case *v1alpha1.NodePodProbeList:
		s.lists++
		for _, npp := range s.plans {
			list.Items = append(list.Items, *npp)
		}
	case *seamarkv1alpha1.ProbeReportList:
		for _, slice := range s.slices {
			if o.FieldSelector.String() == "nodeName="+slice.NodeName {
				list.Items = append(list.Items, slice)
			}
		}
	case *seamarkv1alpha1.ProbePlanList:
		list.Items = append(list.Items, s.planSlices...)
	default:
		return fmt.Errorf("list of %T", list)
	}
	return nil
}

// writes records the writes of markers, and stores them.
type writes struct {
	*store
	statuses []string
	released []string
	// finalizers are the numbers of finalizers written.
	finalizers []int
	// stored is the resource version after the write of a status, if it changes.
	stored string
	// fail is returned by the next writes of a status.
	fail error
}

func (w *writes) Status(_ context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	for _, c := range status.Conditions {
		w.statuses = append(w.statuses, words(c))
	}
	w.markers[client.ObjectKeyFromObject(marker)].Status = status
	stored := marker.DeepCopy()
	stored.Status = status
	stored.ResourceVersion = cmp.Or(w.stored, marker.ResourceVersion)
	return stored, nil
}

func (w *writes) Finalizers(_ context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) (string, error) {
	if len(finalizers) == 0 {
		delete(w.markers, client.ObjectKeyFromObject(marker))
		w.released = append(w.released, marker.Name)
	}
	w.finalizers = append(w.finalizers, len(finalizers))
	return "1000", nil
}

// world is a reconciler with a cache.
type world struct {
	*testing.T
	*writes
	r   *Reconciler
	now time.Time
	// queue is that of the reconciler. toMark and toPlan are those of the controllers that write pods
	// and plans.
	queue, toMark, toPlan controllers.Queue
	events                *record.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &writes{store: &store{
		markers: map[client.ObjectKey]*v1alpha1.PodProbeMarker{}, pods: map[client.ObjectKey]*corev1.Pod{}, plans: map[string]*v1alpha1.NodePodProbe{},
	}}
	f := &world{
		T: t, writes: w, now: time.Unix(1_700_000_000, 0), events: record.NewFakeRecorder(10_000),
		queue: newQueue(t), toMark: newQueue(t), toPlan: newQueue(t),
	}
	podInbox, nodeInbox := &controllers.Inbox{}, &controllers.Inbox{}
	for inbox, queue := range map[*controllers.Inbox]controllers.Queue{podInbox: f.toMark, nodeInbox: f.toPlan} {
		expect.NoError(t, inbox.Source().Start(t.Context(), queue))
	}
	f.r = New(Options{
		Reader: gather.Reader{
			Client: w.store, Compiler: plan.NewCompiler("excluded"), Options: podview.Options{Defaults: plan.KubernetesDefaults()},
		},
		Markers: w, Pods: podInbox, Plans: nodeInbox, Refusals: &problems.Refusals{}, Recorder: f.events,
		Problems: &problems.Marks{}, Stale: &controllers.Inbox{},
		Metrics: metrics.New(prometheus.NewRegistry()), Now: func() time.Time { return f.now },
	})
	return f
}

func newQueue(t *testing.T) controllers.Queue {
	t.Helper()
	q := fakeapi.Queue(t)
	t.Cleanup(q.ShutDown)
	return q
}

// addPods adds pods or replaces them, without events.
func (f *world) addPods(pods ...*corev1.Pod) {
	for _, pod := range pods {
		f.pods[client.ObjectKeyFromObject(pod)] = pod
	}
}

// addMarkers adds markers, with the events of their creation.
func (f *world) addMarkers(markers ...*v1alpha1.PodProbeMarker) {
	f.Helper()
	for _, marker := range markers {
		f.markers[client.ObjectKeyFromObject(marker)] = marker
		created := event.TypedCreateEvent[*v1alpha1.PodProbeMarker]{Object: marker}
		f.r.ownEvents().Create(f.Context(), created, f.queue)
		f.r.deletedEvents().Create(f.Context(), created, f.queue)
	}
	fakeapi.Drain(f.queue)
}

// update replaces the pod and runs the handlers, and reports whether they enqueued the namespace.
func (f *world) update(pod *corev1.Pod) bool {
	f.Helper()
	key := client.ObjectKeyFromObject(pod)
	e := event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: f.pods[key], ObjectNew: pod}
	f.pods[key] = pod
	f.r.podEvents().Update(f.Context(), e, f.queue)
	f.r.remainingPodEvents().Update(f.Context(), e, f.queue)
	return len(fakeapi.Drain(f.queue)) > 0
}

// remove deletes the pod and runs the handlers.
func (f *world) remove(pod *corev1.Pod) {
	f.Helper()
	e := event.TypedDeleteEvent[*corev1.Pod]{Object: pod}
	delete(f.pods, client.ObjectKeyFromObject(pod))
	f.r.podEvents().Delete(f.Context(), e, f.queue)
	f.r.remainingPodEvents().Delete(f.Context(), e, f.queue)
}

// pass runs a reconcile of the namespace after its pause, and returns when the next one is due.
func (f *world) pass(reconcileOne func(context.Context, reconcile.Request) (reconcile.Result, error), namespace string) time.Duration {
	f.Helper()
	f.now = f.now.Add(minPause)
	result, err := reconcileOne(f.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	expect.NoError(f, err)
	return result.RequeueAfter
}

func (f *world) check(namespace string) time.Duration {
	f.Helper()
	return f.pass(f.r.Reconcile, namespace)
}
func (f *world) release(namespace string) time.Duration {
	f.Helper()
	return f.pass(f.r.Release, namespace)
}

func label(probe, key string) *builders.ProbeBuilder {
	return builders.Probe(probe).Label(v1alpha1.ProbeSucceeded, key, "1")
}

// stored returns a marker that the manager has seen before.
func stored(b *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	marker := b.Generation(1).Build()
	marker.Finalizers, marker.ResourceVersion = []string{v1alpha1.PodProbeMarkerFinalizer}, "10"
	return marker
}

func game(name string) *builders.PodBuilder { return builders.Pod("ns", name).Label("app", "game") }

var errRefused = errors.New("refused")
