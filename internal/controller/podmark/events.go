// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

type queue = controller.Queue

func add(q queue, pod types.NamespacedName) {
	q.Add(reconcile.Request{NamespacedName: pod})
}

// reportEvents returns what to do when an agent reports: the pods whose states changed are
// asked for.
func (r *Reconciler) reportEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.NodePodProbe, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.NodePodProbe], q queue) {
			r.reported(ctx, q, &v1alpha1.NodePodProbe{}, e.Object, !e.IsInInitialList)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.NodePodProbe], q queue) {
			r.reported(ctx, q, e.ObjectOld, e.ObjectNew, true)
		},
	}
}

func (r *Reconciler) reported(ctx context.Context, q queue, before, after *v1alpha1.NodePodProbe, live bool) {
	now := r.Now()
	for _, pod := range mark.Changed(before, after) {
		if live {
			r.arrivals.note(pod, now)
		}
		add(q, pod)
	}
	if live && !mark.Reported(before) && mark.Reported(after) {
		// Marks kept until the agent spoke may have to go.
		r.addPods(ctx, q, client.MatchingFields{controller.NodeNameField: after.Name})
	}
}

// podEvents returns what to do when a pod changes: it is asked for when what it may carry,
// or what it carries of ours, is another.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			// A report that arrives before its pod has found none to mark.
			late := !e.IsInInitialList && plan.Eligible(e.Object)
			if late || r.isProvided(ctx, e.Object) || mark.Entry(e.Object.ManagedFields) != nil {
				add(q, client.ObjectKeyFromObject(e.Object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			markers := func() []*plan.Marker { return r.markersOf(ctx, e.ObjectNew.Namespace) }
			provided := r.provides(ctx, e.ObjectOld, e.ObjectNew)
			if provided {
				r.arrivals.note(client.ObjectKeyFromObject(e.ObjectNew), r.Now())
			}
			if provided || !plan.SamePlan(e.ObjectOld, e.ObjectNew, markers) || !sameMarks(e.ObjectOld, e.ObjectNew) {
				add(q, client.ObjectKeyFromObject(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], _ queue) {
			r.recent.Forget(client.ObjectKeyFromObject(e.Object))
			r.arrivals.take(client.ObjectKeyFromObject(e.Object))
		},
	}
}

func (r *Reconciler) markersOf(ctx context.Context, namespace string) []*plan.Marker {
	return controller.MarkersOrNone(ctx, r.Cache, r.Compiler, namespace)
}

// sameMarks tells whether both versions of the pod carry the same marks of ours, and the
// same that OpenKruise owns.
func sameMarks(before, after *corev1.Pod) bool {
	old, errOld := mark.Owned(before)
	current, err := mark.Owned(after)
	oldInherited, errOldInherited := mark.Inherited(before.ManagedFields)
	inherited, errInherited := mark.Inherited(after.ManagedFields)
	return errors.Join(errOld, err, errOldInherited, errInherited) == nil &&
		current.Equal(old) && inherited.Equal(oldInherited)
}

// markerEvents returns what to do when a marker changes: the pods that it selects, before or
// after, are asked for. Markers found at the start are not: all pods with marks or
// states are.
func (r *Reconciler) markerEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if !e.IsInInitialList {
				r.addSelected(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q queue) {
			if controller.SameMarker(e.ObjectOld, e.ObjectNew) {
				return
			}
			r.addSelected(ctx, q, e.ObjectNew)
			if !equality.Semantic.DeepEqual(e.ObjectOld.Spec.Selector, e.ObjectNew.Spec.Selector) {
				r.addSelected(ctx, q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.PodProbeMarker], q queue) {
			r.addSelected(ctx, q, e.Object)
		},
	}
}

func (r *Reconciler) addSelected(ctx context.Context, q queue, marker *v1alpha1.PodProbeMarker) {
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil {
		// Such a marker never made a mark.
		return
	}
	r.addPods(ctx, q, client.InNamespace(marker.Namespace), client.MatchingLabelsSelector{Selector: selector})
}

func (r *Reconciler) addPods(ctx context.Context, q queue, which ...client.ListOption) {
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, which...); err != nil {
		log.FromContext(ctx).Error(err, "Listing the pods of a change")
		return
	}
	for i := range pods.Items {
		add(q, client.ObjectKeyFromObject(&pods.Items[i]))
	}
}

// isProvided tells whether a provider probes the pod, so that its conditions count.
func (r *Reconciler) isProvided(ctx context.Context, pod *corev1.Pod) bool {
	return r.Serverless && controller.IsVirtual(ctx, r.Cache, pod)
}

// provides tells whether the change of the pod is one that its provider says something by.
func (r *Reconciler) provides(ctx context.Context, before, after *corev1.Pod) bool {
	return r.Serverless && !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) &&
		r.isProvided(ctx, after)
}

// nodeEvents returns what to do when a node comes or changes its kind: its pods are marked
// by what others say from then on. Those found at the start may have come after their pods.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			if serverless.IsVirtual(e.Object.Labels) {
				r.addPods(ctx, q, client.MatchingFields{controller.NodeNameField: e.Object.Name})
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			if serverless.IsVirtual(e.ObjectOld.Labels) != serverless.IsVirtual(e.ObjectNew.Labels) {
				r.addPods(ctx, q, client.MatchingFields{controller.NodeNameField: e.ObjectNew.Name})
			}
		},
	}
}
