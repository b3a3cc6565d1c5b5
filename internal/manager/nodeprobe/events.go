// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controller.Add(mgr, "nodeprobe", controller.SubjectNode, r, concurrency,
		source.Kind(informers, gather.NewNode(), r.nodeEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controller.MarkerEvents(r.touchNodes)),
		source.Kind(informers, &v1alpha1.NodePodProbe{}, r.nodePodProbeEvents()),
		source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
		r.Inbox.Source())
}

// touch opens or extends the node's burst and enqueues the node for when it may be due.
func (r *Reconciler) touch(q controller.Queue, node string, settle settle) {
	if node == "" {
		return
	}
	now := r.Now()
	r.bursts.Update(node, func(b *burst) bool {
		b.touch(now, settle)
		return true
	})
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}, settle.idle)
}

// settling returns how long the compilation of the node still has to wait. It closes the node's burst
// if the compilation is due. A node without a burst was enqueued for another reason, and is due.
func (r *Reconciler) settling(node string) (wait time.Duration) {
	now := r.Now()
	r.bursts.Update(node, func(b *burst) bool {
		wait = b.wait(now)
		return wait > 0
	})
	return wait
}

// nodeEvents returns a handler that touches a node when it is created, deleted or recreated,
// and when its labels start or cease to be those of a node without an agent.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q controller.Queue) {
			r.touch(q, e.Object.Name, afterPod())
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q controller.Queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID ||
				serverless.HasAgent(e.ObjectOld.Labels) != serverless.HasAgent(e.ObjectNew.Labels) {
				r.touch(q, e.ObjectNew.Name, afterPod())
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], q controller.Queue) {
			r.touch(q, e.Object.Name, afterPod())
		},
	}
}

// podEvents returns a handler that touches the node of a pod when the pod's plan may change.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q controller.Queue) {
			if plan.Eligible(e.Object) {
				r.touch(q, e.Object.Spec.NodeName, afterPod())
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q controller.Queue) {
			markers := func() []*plan.Marker { return r.lookup.Markers(ctx, e.ObjectNew.Namespace) }
			if plan.SamePlan(e.ObjectOld, e.ObjectNew, markers) {
				return
			}
			// After a lost watch, a pod and its successor with the same name, perhaps on
			// another node, appear as two versions of one object.
			for _, pod := range []*corev1.Pod{e.ObjectOld, e.ObjectNew} {
				if plan.Eligible(pod) {
					r.touch(q, pod.Spec.NodeName, afterPod())
				}
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q controller.Queue) {
			r.touch(q, e.Object.Spec.NodeName, afterPod())
		},
	}
}

// touchNodes touches the nodes of the pods that match the marker's selector, and those whose
// plan has a probe of the marker: the pods may have changed their labels since.
func (r *Reconciler) touchNodes(ctx context.Context, q controller.Queue, marker *v1alpha1.PodProbeMarker) {
	pods := r.lookup.SelectedPods(ctx, marker)
	nodes := sets.New(r.lookup.Planned(ctx, client.ObjectKeyFromObject(marker))...)
	for _, pod := range pods {
		nodes.Insert(pod.Spec.NodeName)
	}
	for node := range nodes {
		r.touch(q, node, afterMarker())
	}
}

// nodePodProbeEvents returns a handler that touches a node when its NodePodProbe is created or
// deleted, or another client changes its plan. It ignores the status and the annotations.
func (r *Reconciler) nodePodProbeEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.NodePodProbe, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			r.touch(q, e.Object.Name, afterPod())
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation {
				r.touch(q, e.ObjectNew.Name, afterPod())
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			r.recent.Forget(e.Object.Name)
			r.Refusals.Note(client.ObjectKeyFromObject(e.Object), nil)
			r.touch(q, e.Object.Name, afterPod())
		},
	}
}
