// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, as two controllers with at most concurrency reconciles
// at a time each.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	touch := func(q controller.Queue, marker types.NamespacedName) { r.touch(q, marker.Namespace, marker.Name) }
	return errors.Join(
		controller.Add(mgr, "marker", controller.SubjectNamespace, r, concurrency,
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.ownEvents()),
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, controller.MarkerEvents(r.touchNamespace)),
			source.Kind(informers, &corev1.Pod{}, r.podEvents()),
			source.Kind(informers, &v1alpha1.NodePodProbe{}, r.statusEvents()),
			source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
			r.Shortages.Feed(touch), r.Inbox.Feed(touch)),
		controller.Add(mgr, "release", controller.SubjectNamespace, reconcile.Func(r.Release), concurrency,
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.deletedEvents()),
			source.Kind(informers, &corev1.Pod{}, r.remainingPodEvents()),
			source.Kind(informers, &v1alpha1.NodePodProbe{}, r.remainingPlanEvents())),
	)
}

// enqueue adds the namespace to the queue.
func enqueue(q controller.Queue, namespace string) {
	controller.Enqueue(q, types.NamespacedName{Name: namespace})
}

// touch makes the markers due.
func (r *Reconciler) touch(q controller.Queue, namespace string, markers ...string) {
	now := r.Now()
	for _, marker := range markers {
		r.agenda.add(namespace, appointment{marker, now})
	}
	if len(markers) > 0 {
		enqueue(q, namespace)
	}
}

// touchNamespace makes all markers of a changed marker's namespace due, because they may win or
// lose keys.
func (r *Reconciler) touchNamespace(_ context.Context, q controller.Queue, changed *v1alpha1.PodProbeMarker) {
	r.touch(q, changed.Namespace, everyMarker, changed.Name)
}

// ownEvents returns a handler that makes each marker due that is created or changes in any way.
func (r *Reconciler) ownEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return handler.TypedFuncs[*v1alpha1.PodProbeMarker, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.PodProbeMarker], q controller.Queue) {
			r.touch(q, e.Object.Namespace, e.Object.Name)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.PodProbeMarker], q controller.Queue) {
			if e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion {
				r.touch(q, e.ObjectNew.Namespace, e.ObjectNew.Name)
			}
		},
	}
}

// podEvents returns a handler that makes the markers of a pod due when one of them starts or
// stops probing it, because other markers of the pod may win or lose keys. It ignores the pods
// that exist at the start, because all markers are due then.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q controller.Queue) {
			if !e.IsInInitialList && plan.Eligible(e.Object) {
				r.touch(q, e.Object.Namespace, selecting(e.Object, r.lookup.Markers(ctx, e.Object.Namespace))...)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q controller.Queue) {
			if !sameInputs(e.ObjectOld, e.ObjectNew) {
				r.touch(q, e.ObjectNew.Namespace, affected(e.ObjectOld, e.ObjectNew, r.lookup.Markers(ctx, e.ObjectNew.Namespace))...)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q controller.Queue) {
			r.touch(q, e.Object.Namespace, selecting(e.Object, r.lookup.Markers(ctx, e.Object.Namespace))...)
		},
	}
}

// statusEvents returns a handler that makes the markers due whose errors in the status of a
// NodePodProbe change, and those with errors when the status takes the place of the ProbeReports of
// the node or loses it.
func (r *Reconciler) statusEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	changed := func(ctx context.Context, q controller.Queue, before, after *v1alpha1.NodePodProbe) {
		r.touchChanged(q, statusErrors(before), statusErrors(after))
		if mark.InStatus(before) != mark.InStatus(after) {
			for _, slice := range r.lookup.Slices(ctx, after.Name) {
				r.touchChanged(q, nil, slice.Pods)
			}
		}
	}
	return handler.TypedFuncs[*v1alpha1.NodePodProbe, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			changed(ctx, q, &v1alpha1.NodePodProbe{}, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			changed(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.NodePodProbe], q controller.Queue) {
			changed(ctx, q, e.Object, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: e.Object.Name}})
		},
	}
}

// statusErrors returns the entries of a status that take effect.
func statusErrors(npp *v1alpha1.NodePodProbe) []seamarkv1alpha1.PodReport {
	if !mark.InStatus(npp) {
		return nil
	}
	return mark.StatusReports(npp)
}

// sliceEvents returns a handler that makes the markers due whose errors in ProbeReports change.
func (r *Reconciler) sliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbeReport, reconcile.Request] {
	return handler.TypedFuncs[*seamarkv1alpha1.ProbeReport, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			r.touchChanged(q, nil, e.Object.Pods)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			r.touchChanged(q, e.ObjectOld.Pods, e.ObjectNew.Pods)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport], q controller.Queue) {
			r.touchChanged(q, e.Object.Pods, nil)
		},
	}
}

// touchChanged makes the markers due whose errors differ between two versions of a report.
func (r *Reconciler) touchChanged(q controller.Queue, before, after []seamarkv1alpha1.PodReport) {
	for _, marker := range mark.ChangedErrors(before, after) {
		r.touch(q, marker.Namespace, marker.Name)
	}
}

// selecting returns the names of the markers whose selector matches the pod.
func selecting(pod *corev1.Pod, markers []*plan.Marker) []string {
	var found []string
	for _, marker := range markers {
		if marker.Matches(pod) {
			found = append(found, marker.Name)
		}
	}
	return found
}

// sameInputs reports whether the same markers probe both versions of the pod. After a lost watch,
// a pod and its successor with the same name appear as two versions of one object.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && plan.Eligible(before) == plan.Eligible(after) && maps.Equal(before.Labels, after.Labels)
}

// affected returns the names of the markers that probe the pod before or after the change, if one of
// them does so only before or only after, or if it is another pod.
func affected(before, after *corev1.Pod, markers []*plan.Marker) []string {
	var either []string
	changed := before.UID != after.UID
	for _, marker := range markers {
		probed := plan.Eligible(before) && marker.Matches(before)
		probes := plan.Eligible(after) && marker.Matches(after)
		if probed || probes {
			either = append(either, marker.Name)
		}
		changed = changed || probed != probes
	}
	if !changed {
		return nil
	}
	return either
}
