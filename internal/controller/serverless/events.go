// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/serverless"
)

type queue = controller.Queue

// podEvents returns what to do when a pod changes: one that has annotations, or that a
// provider runs, is asked for where they may have to be others.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			r.add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if !sameInputs(e.ObjectOld, e.ObjectNew) {
				r.add(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], _ queue) {
			r.recent.Forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// sameInputs tells whether both versions of the pod have and want the same annotations.
// Containers are not compared: those that count can't change while a pod lives.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && before.Spec.NodeName == after.Spec.NodeName &&
		serverless.Of(before) == serverless.Of(after) && maps.Equal(before.Labels, after.Labels)
}

func (r *Reconciler) add(ctx context.Context, q queue, pod *corev1.Pod) {
	if serverless.Of(pod) != (serverless.Annotations{}) || controller.IsVirtual(ctx, r.Cache, pod) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)})
	}
}

// nodeEvents returns what to do when a node comes or changes its kind: its pods are asked
// for. Those found at the start may have come after their pods.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			r.addPods(ctx, q, client.MatchingFields{controller.NodeNameField: e.Object.Name})
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			if serverless.IsVirtual(e.ObjectOld.Labels) != serverless.IsVirtual(e.ObjectNew.Labels) {
				r.addPods(ctx, q, client.MatchingFields{controller.NodeNameField: e.ObjectNew.Name})
			}
		},
	}
}

// markerEvents returns what to do when a marker changes: the pods of its namespace are
// asked for. Markers found at the start are passed over: all pods are asked for then.
func (r *Reconciler) markerEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if !e.IsInInitialList {
				r.addPods(ctx, q, client.InNamespace(e.Object.Namespace))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if !controller.SameMarker(e.ObjectOld, e.ObjectNew) {
				r.addPods(ctx, q, client.InNamespace(e.ObjectNew.Namespace))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.PodProbeMarker], q queue) {
			r.addPods(ctx, q, client.InNamespace(e.Object.Namespace))
		},
	}
}

func (r *Reconciler) addPods(ctx context.Context, q queue, which client.ListOption) {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, which); err != nil {
		log.FromContext(ctx).Error(err, "Listing the pods of a change")
		return
	}
	for i := range pods.Items {
		r.add(ctx, q, &pods.Items[i])
	}
}
