// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controller.Add(mgr, "marker", controller.SubjectMarker, r, concurrency,
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.PodProbeMarker]{}),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controller.MarkerEvents(r.enqueueNamespace)),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, &v1alpha1.NodePodProbe{}, r.planEvents()),
		source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
		r.Shortages.Source(), r.Inbox.Source())
}

// enqueueNamespace enqueues all markers of a changed marker's namespace, because they may
// win or lose keys.
func (r *Reconciler) enqueueNamespace(ctx context.Context, q controller.Queue, changed *v1alpha1.PodProbeMarker) {
	enqueue(q, r.lookup.Markers(ctx, changed.Namespace))
}

// podEvents returns a handler that enqueues the markers of a pod when one of them starts or
// stops probing it, because other markers of the pod may win or lose keys, and the deleted
// markers that wait for the pod. It ignores the pods that exist at the start, because all
// markers are enqueued then.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q controller.Queue) {
			if !e.IsInInitialList && plan.Eligible(e.Object) {
				enqueue(q, selecting(e.Object, r.lookup.Markers(ctx, e.Object.Namespace)))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q controller.Queue) {
			if !sameInputs(e.ObjectOld, e.ObjectNew) {
				enqueue(q, affected(e.ObjectOld, e.ObjectNew, r.lookup.Markers(ctx, e.ObjectNew.Namespace)))
			}
			r.enqueueWaiting(q, client.ObjectKeyFromObject(e.ObjectNew))
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q controller.Queue) {
			enqueue(q, selecting(e.Object, r.lookup.Markers(ctx, e.Object.Namespace)))
			r.enqueueWaiting(q, client.ObjectKeyFromObject(e.Object))
		},
	}
}

// planEvents returns a handler that enqueues the deleted markers that wait for a plan when it
// changes, and the markers whose errors in its status change. It ignores reported states.
func (r *Reconciler) planEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.NodePodProbe, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			enqueueAll(q, r.reported.setStatus(e.Object))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			enqueueAll(q, r.reported.setStatus(e.ObjectNew))
			if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation {
				r.enqueueWaiting(q, client.ObjectKeyFromObject(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			enqueueAll(q, r.reported.setStatus(&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: e.Object.Name}}))
			r.enqueueWaiting(q, client.ObjectKeyFromObject(e.Object))
		},
	}
}

// sliceEvents returns a handler that enqueues the markers whose errors in ProbeReports change.
func (r *Reconciler) sliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbeReport, reconcile.Request] {
	set := func(q controller.Queue, slice *seamarkv1alpha1.ProbeReport, pods []seamarkv1alpha1.PodReport) {
		enqueueAll(q, r.reported.setSlice(slice.NodeName, slice.Name, pods))
	}
	return handler.TypedFuncs[*seamarkv1alpha1.ProbeReport, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			set(q, e.Object, e.Object.Pods)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			set(q, e.ObjectNew, e.ObjectNew.Pods)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			set(q, e.Object, nil)
		},
	}
}

func enqueueAll(q controller.Queue, markers []types.NamespacedName) {
	for _, marker := range markers {
		controller.Enqueue(q, marker)
	}
}

// enqueueWaiting enqueues the deleted markers that wait for the pod or plan.
func (r *Reconciler) enqueueWaiting(q controller.Queue, object types.NamespacedName) {
	enqueueAll(q, r.releases.changed(object))
}

func enqueue(q controller.Queue, markers []*plan.Marker) {
	for _, marker := range markers {
		controller.Enqueue(q, marker.Key())
	}
}

// selecting returns the markers whose selector matches the pod.
func selecting(pod *corev1.Pod, markers []*plan.Marker) []*plan.Marker {
	var found []*plan.Marker
	for _, marker := range markers {
		if marker.Matches(pod) {
			found = append(found, marker)
		}
	}
	return found
}

// sameInputs reports whether the same markers probe both versions of the pod. After a lost watch,
// a pod and its successor with the same name appear as two versions of one object.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && plan.Eligible(before) == plan.Eligible(after) && maps.Equal(before.Labels, after.Labels)
}

// affected returns the markers that probe the pod before or after the change, if one of
// them does so only before or only after, or if it is another pod.
func affected(before, after *corev1.Pod, markers []*plan.Marker) []*plan.Marker {
	var either []*plan.Marker
	changed := before.UID != after.UID
	for _, marker := range markers {
		probed := plan.Eligible(before) && marker.Matches(before)
		probes := plan.Eligible(after) && marker.Matches(after)
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
