// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// Queue holds the objects that a controller has to reconcile.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Enqueue adds the named object to the queue.
func Enqueue(q Queue, name types.NamespacedName) {
	q.Add(reconcile.Request{NamespacedName: name})
}

// EnqueueAt enqueues an object after a time, with a priority if the queue has priorities.
func EnqueueAt(q Queue, name types.NamespacedName, after time.Duration, priority int) {
	request := reconcile.Request{NamespacedName: name}
	if q, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, request)
		return
	}
	q.AddAfter(request, after)
}

// EnqueuePods adds the pods to the queue.
func EnqueuePods(q Queue, pods []*corev1.Pod) {
	for _, pod := range pods {
		Enqueue(q, client.ObjectKeyFromObject(pod))
	}
}

// MarkerEvents returns a handler that calls changed for every marker that is created,
// edited or deleted. If an edit changes the selector, it calls changed for both versions.
// It ignores the markers that exist at the start, because the controllers get an event for
// every other object at the start too.
func MarkerEvents(changed func(context.Context, Queue, *v1alpha1.PodProbeMarker)) handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q Queue) {
			if !e.IsInInitialList {
				changed(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q Queue) {
			if sameMarker(e.ObjectOld, e.ObjectNew) {
				return
			}
			changed(ctx, q, e.ObjectNew)
			if !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Selector, e.ObjectNew.Spec.Selector) {
				changed(ctx, q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.PodProbeMarker], q Queue) {
			changed(ctx, q, e.Object)
		},
	}
}

// sameMarker reports whether both are the same generation of one marker, and neither or both
// are being deleted or publish bodies.
func sameMarker(before, after *v1alpha1.PodProbeMarker) bool {
	return before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		plan.PublishesBody(before) == plan.PublishesBody(after)
}

// NodeEvents returns a handler that calls created for every new node, and changed for every
// node that becomes a virtual node or ceases to be one. Nodes that exist at the start
// count as new, because the cache may receive a node after its pods.
func NodeEvents(created, changed func(context.Context, Queue, *metav1.PartialObjectMetadata)) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q Queue) {
			created(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q Queue) {
			if serverless.IsVirtual(e.ObjectOld.Labels) != serverless.IsVirtual(e.ObjectNew.Labels) {
				changed(ctx, q, e.ObjectNew)
			}
		},
	}
}

// Lookup finds the objects that an event affects. Event handlers cannot return errors, so
// it logs them and returns nothing.
type Lookup struct {
	// Reader reads from the cache.
	Reader gather.Reader
}

// Markers returns the markers of the namespace, except those that do not compile.
func (l Lookup) Markers(ctx context.Context, namespace string) []*plan.Marker {
	markers, err := l.Reader.Markers(ctx, namespace)
	logFailure(ctx, err)
	return markers
}

// SelectedPods returns the pods that match the marker's selector.
func (l Lookup) SelectedPods(ctx context.Context, marker *v1alpha1.PodProbeMarker) []*corev1.Pod {
	pods, err := l.Reader.SelectedPods(ctx, marker)
	logFailure(ctx, err)
	return pods
}

// NamespacePods returns the pods of the namespace.
func (l Lookup) NamespacePods(ctx context.Context, namespace string) []*corev1.Pod {
	pods, err := l.Reader.NamespacePods(ctx, namespace)
	logFailure(ctx, err)
	return pods
}

// NodePods returns the pods that are bound to the node.
func (l Lookup) NodePods(ctx context.Context, node string) []*corev1.Pod {
	pods, err := l.Reader.NodePods(ctx, node)
	logFailure(ctx, err)
	return pods
}

// Slices returns the ProbeReports of the node.
func (l Lookup) Slices(ctx context.Context, node string) []*seamarkv1alpha1.ProbeReport {
	slices, err := l.Reader.Slices(ctx, node)
	logFailure(ctx, err)
	return slices
}

// Planned returns the nodes whose plan has a probe of the marker.
func (l Lookup) Planned(ctx context.Context, marker types.NamespacedName) []string {
	nodes, err := l.Reader.Planned(ctx, marker)
	logFailure(ctx, err)
	return nodes
}

// IsVirtual reports whether the pod runs on a virtual node.
func (l Lookup) IsVirtual(ctx context.Context, pod *corev1.Pod) bool {
	place, err := l.Reader.Place(ctx, pod)
	logFailure(ctx, err)
	return place == view.PlaceVirtual
}

func logFailure(ctx context.Context, err error) {
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to find the objects that an event affects")
	}
}
