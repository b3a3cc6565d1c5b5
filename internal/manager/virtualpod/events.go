// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controller.Add(mgr, "serverless", controller.SubjectPod, r, concurrency,
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, gather.NewNode(), r.nodeEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controller.MarkerEvents(r.enqueueNamespacePods)),
		r.Inbox.Source())
}

// podEvents returns a handler that enqueues new pods, and pods whose annotations may have to
// change.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q controller.Queue) {
			r.enqueue(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q controller.Queue) {
			if !sameInputs(e.ObjectOld, e.ObjectNew) {
				r.enqueue(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], _ controller.Queue) {
			r.recent.Forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// nodeEvents returns a handler that enqueues the pods of new nodes, and of nodes that become
// virtual nodes or cease to be virtual nodes.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return controller.NodeEvents(r.enqueueNodePods, r.enqueueNodePods)
}

// sameInputs reports whether both versions of the pod have and need the same annotations. It
// does not compare containers, because those that matter are immutable.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && before.Spec.NodeName == after.Spec.NodeName &&
		serverless.Of(before) == serverless.Of(after) && maps.Equal(before.Labels, after.Labels)
}

// enqueue adds the pod if it has annotations or runs on a virtual node.
func (r *Reconciler) enqueue(ctx context.Context, q controller.Queue, pod *corev1.Pod) {
	if serverless.Of(pod) != (serverless.Annotations{}) || r.lookup.IsVirtual(ctx, pod) {
		controller.Enqueue(q, client.ObjectKeyFromObject(pod))
	}
}

func (r *Reconciler) enqueueNodePods(ctx context.Context, q controller.Queue, node *metav1.PartialObjectMetadata) {
	r.enqueueAll(ctx, q, r.lookup.NodePods(ctx, node.Name))
}

func (r *Reconciler) enqueueNamespacePods(ctx context.Context, q controller.Queue, marker *v1alpha1.PodProbeMarker) {
	r.enqueueAll(ctx, q, r.lookup.NamespacePods(ctx, marker.Namespace))
}

func (r *Reconciler) enqueueAll(ctx context.Context, q controller.Queue, pods []*corev1.Pod) {
	for _, pod := range pods {
		r.enqueue(ctx, q, pod)
	}
}
