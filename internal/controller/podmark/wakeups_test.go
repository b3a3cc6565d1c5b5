// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// A marked pod loses its label while its marker changes. The stores get both changes (P, M) and
// the handlers run (p, m) in every order in which each handler runs after its store. In each
// order the pod is enqueued after a change that removes its mark.
func TestNoWakeUpIsLost(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	pod := func(app string) *corev1.Pod {
		return builders.Pod("ns", "a").Label("app", app).Label("healthy", "true").ManagedFields("seamark", "status", entry).Build()
	}
	marker := func() *builders.MarkerBuilder {
		return builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true"))
	}
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":       marker().Deleting().Build(),
		"marker is deleted":             nil,
		"marker gets another selector":  marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe":  marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
		"marker gets another condition": marker().Probe(builders.Probe("q").Condition("x/y")).Generation(2).Build(),
	}
	for name, changed := range changes {
		for _, order := range []string{"PpMm", "PMpm", "PMmp", "MPpm", "MPmp", "MmPp"} {
			t.Run(name+" "+order, func(t *testing.T) {
				written := &recorded{}
				r := reconciler(t, written)
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				before, after := pod("game"), pod("other")
				stored, storedMarker := before, marker().Build()
				for _, step := range order {
					switch step {
					case 'P':
						stored = after
					case 'M':
						storedMarker = changed
					}
					cached := []client.Object{stored, reported("uid-a", "Succeeded")}
					if storedMarker != nil {
						cached = append(cached, storedMarker)
					}
					r.Reader.Client = fakeapi.Client(t, cached...).WithReturnManagedFields().Build()
					r.lookup.Reader.Client = r.Reader.Client
					switch step {
					case 'p':
						r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}, q)
					case 'm':
						markerEvent(t, r, q, marker().Build(), changed)
					}
					for range q.Len() {
						request, _ := q.Get()
						q.Done(request)
						if _, err := r.Reconcile(t.Context(), request); err != nil {
							t.Fatal(err)
						}
					}
				}
				if diff := cmp.Diff([]map[string]string{nil}, written.labels); diff != "" {
					t.Errorf("labels written (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// markerEvent runs the handler of markers; no marker after the change is a deletion.
func markerEvent(t *testing.T, r *Reconciler, q controller.Queue, before, after *v1alpha1.PodProbeMarker) {
	t.Helper()
	events := controller.MarkerEvents(r.enqueueSelected)
	if after == nil {
		events.Delete(t.Context(), event.TypedDeleteEvent[*v1alpha1.PodProbeMarker]{Object: before}, q)
		return
	}
	events.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]{ObjectOld: before, ObjectNew: after}, q)
}
