// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interleave plays concurrent changes to the event handlers of a controller.
package interleave

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// Race is a change of a pod and a change of a marker at the same time.
type Race struct {
	PodBefore, PodAfter *corev1.Pod
	// MarkerAfter is nil if the marker is deleted.
	MarkerBefore, MarkerAfter *v1alpha1.PodProbeMarker
	// Others are the objects that do not change.
	Others []client.Object
}

// Controller is the controller under test.
type Controller struct {
	Pods    handler.TypedEventHandler[*corev1.Pod, reconcile.Request]
	Markers handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request]
	// Store replaces the stores that the controller reads.
	Store func(client.Client)
	// Stepped is called after each step. changed is whether a store has a new version.
	Stepped func(q controllers.Queue, changed bool)
}

// Orders returns all orders of four steps in which each handler runs after its store is updated:
// P and M update the stores of pods and markers, p and m run their handlers.
func Orders() []string { return []string{"PpMm", "PMpm", "PMmp", "MPpm", "MPmp", "MmPp"} }

// Play plays the changes in one of the Orders.
func (r Race) Play(t *testing.T, order string, c Controller) {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	pod, marker := r.PodBefore, r.MarkerBefore
	for _, step := range order {
		switch step {
		case 'P':
			pod = r.PodAfter
		case 'M':
			marker = r.MarkerAfter
		}
		stored := append([]client.Object{pod}, r.Others...)
		if marker != nil {
			stored = append(stored, marker)
		}
		c.Store(fakeapi.Client(t, stored...).WithReturnManagedFields().Build())
		switch step {
		case 'p':
			c.Pods.Update(t.Context(), event.TypedUpdateEvent[*corev1.Pod]{ObjectOld: r.PodBefore, ObjectNew: r.PodAfter}, q)
		case 'm':
			r.markerEvent(t, c, q)
		}
		c.Stepped(q, pod == r.PodAfter || marker == r.MarkerAfter)
	}
}

func (r Race) markerEvent(t *testing.T, c Controller, q controllers.Queue) {
	t.Helper()
	if r.MarkerAfter == nil {
		c.Markers.Delete(t.Context(), event.TypedDeleteEvent[*v1alpha1.PodProbeMarker]{Object: r.MarkerBefore}, q)
		return
	}
	c.Markers.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]{ObjectOld: r.MarkerBefore, ObjectNew: r.MarkerAfter}, q)
}
