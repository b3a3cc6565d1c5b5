// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/plan"
)

type queue = controller.Queue

func add(q queue, marker types.NamespacedName) {
	q.Add(reconcile.Request{NamespacedName: marker})
}

// markerEvents returns what to do when a marker changes: it is asked for, and where its
// spec may win or lose keys, so are the others of its namespace.
func (r *Reconciler) markerEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q queue) {
			add(q, client.ObjectKeyFromObject(e.Object))
			if !e.IsInInitialList {
				r.addNamespace(ctx, q, e.Object.Namespace)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q queue) {
			add(q, client.ObjectKeyFromObject(e.ObjectNew))
			if !controller.SameMarker(e.ObjectOld, e.ObjectNew) {
				r.addNamespace(ctx, q, e.ObjectNew.Namespace)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.PodProbeMarker], q queue) {
			add(q, client.ObjectKeyFromObject(e.Object))
			r.addNamespace(ctx, q, e.Object.Namespace)
		},
	}
}

func (r *Reconciler) addNamespace(ctx context.Context, q queue, namespace string) {
	r.addAll(q, r.markersOf(ctx, namespace))
}

func (r *Reconciler) markersOf(ctx context.Context, namespace string) []*plan.Marker {
	return controller.MarkersOrNone(ctx, r.Cache, r.Compiler, namespace)
}

// podEvents returns what to do when a pod changes: where a marker begins or ceases to
// probe it, all its markers are asked for, since keys may change hands among them. Pods
// found at the start are passed over: all markers are asked for then.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			if !e.IsInInitialList && plan.Eligible(e.Object) {
				r.addAll(q, selecting(e.Object, r.markersOf(ctx, e.Object.Namespace)))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			r.addAll(q, concerned(e.ObjectOld, e.ObjectNew, r.markersOf(ctx, e.ObjectNew.Namespace)))
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
			r.addAll(q, selecting(e.Object, r.markersOf(ctx, e.Object.Namespace)))
		},
	}
}

func (r *Reconciler) addAll(q queue, markers []*plan.Marker) {
	for _, marker := range markers {
		add(q, marker.Key())
	}
}

// selecting returns the markers that select the pod.
func selecting(pod *corev1.Pod, markers []*plan.Marker) []*plan.Marker {
	var found []*plan.Marker
	for _, marker := range markers {
		if marker.Selects(pod) {
			found = append(found, marker)
		}
	}
	return found
}

// concerned returns the markers that probe the pod before or after the change, if one
// of them does so only before or only after.
func concerned(before, after *corev1.Pod, markers []*plan.Marker) []*plan.Marker {
	var either []*plan.Marker
	changed := false
	for _, marker := range markers {
		probed := plan.Eligible(before) && marker.Selects(before)
		probes := plan.Eligible(after) && marker.Selects(after)
		if probed || probes {
			either = append(either, marker)
		}
		changed = changed || probed != probes
	}
	if !changed {
		return nil
	}
	return either
}
