// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"

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

// A planned pod loses its label while its marker changes. The stores get both changes (P, M) and
// the handlers run (p, m) in every order in which each handler runs after its store. In each order
// the node is touched after a change that removes the pod from the plan.
func TestNoWakeUpIsLost(t *testing.T) {
	pod := func(app string) *corev1.Pod { return builders.Pod("ns", "a").Label("app", app).Node("node-1").Build() }
	marker := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "ns", Name: "a", UID: "uid-a", Probes: []v1alpha1.ContainerProbe{{Name: "web#p"}},
	}}})
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":      marker().Deleting().Build(),
		"marker is deleted":            nil,
		"marker gets another selector": marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe": marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
	}
	for name, changed := range changes {
		for _, order := range []string{"PpMm", "PMpm", "PMmp", "MPpm", "MPmp", "MmPp"} {
			t.Run(name+" "+order, func(t *testing.T) {
				r, _ := reconciler(t, &recorded{}, nil, nil)
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				before, after := pod("game"), pod("other")
				stored, storedMarker, touched := before, marker().Build(), false
				for _, step := range order {
					switch step {
					case 'P':
						stored = after
					case 'M':
						storedMarker = changed
					}
					cached := []client.Object{stored, npp}
					if storedMarker != nil {
						cached = append(cached, storedMarker)
					}
					r.Reader.Client = fakeapi.Client(t, cached...).Build()
					r.lookup.Reader.Client = r.Reader.Client
					switch step {
					case 'p':
						r.podEvents().Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: before, ObjectNew: after}, q)
					case 'm':
						markerEvent(t, r, q, marker().Build(), changed)
					}
					// Either change removes the pod from the plan, if the node is compiled afterwards.
					if _, open := r.bursts.open["node-1"]; open {
						delete(r.bursts.open, "node-1")
						touched = touched || stored == after || storedMarker == changed
					}
				}
				if !touched {
					t.Error("the node is not touched")
				}
			})
		}
	}
}

// markerEvent runs the handler of markers; no marker after the change is a deletion.
func markerEvent(t *testing.T, r *Reconciler, q controller.Queue, before, after *v1alpha1.PodProbeMarker) {
	t.Helper()
	events := controller.MarkerEvents(r.touchNodes)
	if after == nil {
		events.Delete(t.Context(), event.TypedDeleteEvent[*v1alpha1.PodProbeMarker]{Object: before}, q)
		return
	}
	events.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]{ObjectOld: before, ObjectNew: after}, q)
}
