// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

type queue = controller.Queue

// touch opens or prolongs the node's burst and asks for its compile.
func (r *Reconciler) touch(q queue, node string, needs rest) {
	if node == "" {
		return
	}
	r.bursts.touch(node, r.Now(), needs)
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}, needs.quiet)
}

// nodeEvents returns what to do when a node changes: all that counts are its existence, its
// identity and its kind.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			r.touch(q, e.Object.Name, podRest())
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID ||
				serverless.IsVirtual(e.ObjectOld.Labels) != serverless.IsVirtual(e.ObjectNew.Labels) {
				r.touch(q, e.ObjectNew.Name, podRest())
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q queue) {
			r.touch(q, e.Object.Name, podRest())
		},
	}
}

// podEvents returns what to do when a pod changes.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			if plan.Eligible(e.Object) {
				r.touch(q, e.Object.Spec.NodeName, podRest())
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			markers := func() []*plan.Marker { return r.markersOf(ctx, e.ObjectNew.Namespace) }
			if plan.SamePlan(e.ObjectOld, e.ObjectNew, markers) {
				return
			}
			// A watch that was lost shows a pod and the one that took its name, perhaps on
			// another node, as two versions of one object.
			for _, pod := range []*corev1.Pod{e.ObjectOld, e.ObjectNew} {
				if plan.Eligible(pod) {
					r.touch(q, pod.Spec.NodeName, podRest())
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
			r.touch(q, e.Object.Spec.NodeName, podRest())
		},
	}
}

func (r *Reconciler) markersOf(ctx context.Context, namespace string) []*plan.Marker {
	return controller.MarkersOrNone(ctx, r.Cache, r.Compiler, namespace)
}

// markerEvents returns what to do when a marker changes: the nodes of the pods it selects,
// before or after, are asked for. Markers found at the start are not: all nodes are.
func (r *Reconciler) markerEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if !e.IsInInitialList {
				r.touchSelected(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if controller.SameMarker(e.ObjectOld, e.ObjectNew) {
				return
			}
			r.touchSelected(ctx, q, e.ObjectNew)
			if !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Selector, e.ObjectNew.Spec.Selector) {
				r.touchSelected(ctx, q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.PodProbeMarker], q queue) {
			r.touchSelected(ctx, q, e.Object)
		},
	}
}

func (r *Reconciler) touchSelected(ctx context.Context, q queue, marker *v1alpha1.PodProbeMarker) {
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil {
		// Such a marker was never part of a plan.
		return
	}
	var pods corev1.PodList
	err = r.Cache.List(ctx, &pods, client.InNamespace(marker.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing a marker's pods", "marker", client.ObjectKeyFromObject(marker).String())
		return
	}
	nodes := sets.New[string]()
	for i := range pods.Items {
		nodes.Insert(pods.Items[i].Spec.NodeName)
	}
	for node := range nodes {
		r.touch(q, node, markerRest())
	}
}

// nodePodProbeEvents returns what to do when somebody else changes or deletes a
// NodePodProbe's plan. Reports in its status are passed over.
func (r *Reconciler) nodePodProbeEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.NodePodProbe, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.NodePodProbe], q queue) {
			r.touch(q, e.Object.Name, podRest())
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.NodePodProbe], q queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation {
				r.touch(q, e.ObjectNew.Name, podRest())
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.NodePodProbe], q queue) {
			r.recent.Forget(e.Object.Name)
			r.touch(q, e.Object.Name, podRest())
		},
	}
}
