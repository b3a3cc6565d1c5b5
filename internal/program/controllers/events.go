// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
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

// Changes returns a handler that calls changed for every object that is created, updated or deleted.
// before is nil for a new object, and after is nil for a deleted one. initial is whether the object is
// new because it existed at the start.
func Changes[T client.Object](changed func(ctx context.Context, q Queue, before, after T, initial bool)) handler.TypedEventHandler[T, reconcile.Request] {
	var none T
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q Queue) {
			changed(ctx, q, none, e.Object, e.IsInInitialList)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q Queue) {
			changed(ctx, q, e.ObjectOld, e.ObjectNew, false)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q Queue) {
			changed(ctx, q, e.Object, none, false)
		},
	}
}

// Specs returns a handler that enqueues objects that are new or gone, whose specification has changed or whose deletion
// has begun.
func Specs[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q Queue) {
			Enqueue(q, client.ObjectKeyFromObject(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q Queue) {
			if before, after := e.ObjectOld, e.ObjectNew; before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
				(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || !isolate.Same(before, after) {
				Enqueue(q, client.ObjectKeyFromObject(after))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q Queue) {
			Enqueue(q, client.ObjectKeyFromObject(e.Object))
		},
	}
}

// MarkerEvents returns a handler that calls changed for every marker that is created,
// edited or deleted. If an edit changes the selector, it calls changed for both versions.
// It ignores the markers that exist at the start, because the controllers get an event for
// every other object at the start too.
func MarkerEvents(changed func(context.Context, Queue, *v1alpha1.PodProbeMarker)) handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return Changes(func(ctx context.Context, q Queue, before, after *v1alpha1.PodProbeMarker, initial bool) {
		isUpdate := before != nil && after != nil
		if initial || isUpdate && sameMarker(before, after) {
			return
		}
		if after != nil {
			changed(ctx, q, after)
		}
		if before != nil && (!isUpdate || !equality.Semantic.DeepEqual(before.Spec.Selector, after.Spec.Selector)) {
			changed(ctx, q, before)
		}
	})
}

// sameMarker reports whether both are the same generation of one marker, neither or both are being
// deleted, and the annotations that the plan depends on are the same.
func sameMarker(before, after *v1alpha1.PodProbeMarker) bool {
	return before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		!slices.ContainsFunc([]string{v1alpha1.PublishHTTPBodyAnnotationKey, v1alpha1.MessageUpdatesAnnotationKey}, func(key string) bool {
			return before.Annotations[key] != after.Annotations[key]
		})
}
