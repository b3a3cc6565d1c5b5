// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, as two controllers with at most concurrency reconciles
// at a time each.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	touch := func(q controllers.Queue, marker types.NamespacedName) { r.touch(q, marker.Namespace, marker.Name) }
	return errors.Join(
		controllers.Add(mgr, "marker", controllers.SubjectNamespace, r, concurrency,
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.ownEvents()),
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, controllers.MarkerEvents(r.touchNamespace)),
			source.Kind(informers, &corev1.Pod{}, r.podEvents()),
			source.Kind(informers, &v1alpha1.NodePodProbe{}, r.statusEvents()),
			source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
			r.Problems.Feed(touch),
			r.Stale.Feed(func(q controllers.Queue, pod types.NamespacedName) { r.touchCounts(q, pod.Namespace, everyMarker) })),
		controllers.Add(mgr, "release", controllers.SubjectNamespace, reconcile.Func(r.Release), concurrency,
			source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.deletedEvents()),
			source.Kind(informers, &corev1.Pod{}, r.remainingPodEvents()),
			source.Kind(informers, &v1alpha1.NodePodProbe{}, r.remainingPlanEvents()),
			source.Kind(informers, &seamarkv1alpha1.ProbePlan{}, r.remainingSliceEvents())),
	)
}

func enqueue(q controllers.Queue, namespace string) {
	controllers.Enqueue(q, types.NamespacedName{Name: namespace})
}

// touch makes the markers due.
func (r *Reconciler) touch(q controllers.Queue, namespace string, markers ...string) {
	r.makeDue(q, &r.agenda, namespace, markers)
}

// makeDue makes the markers due in the agenda, and enqueues their namespace.
func (r *Reconciler) makeDue(q controllers.Queue, agenda *agenda, namespace string, markers []string) {
	now := r.Now()
	for _, marker := range markers {
		agenda.add(namespace, appointment{marker, now})
	}
	if len(markers) > 0 {
		enqueue(q, namespace)
	}
}

// touchNamespace makes all markers of a changed marker's namespace due, because they may win or
// lose keys.
func (r *Reconciler) touchNamespace(_ context.Context, q controllers.Queue, changed *v1alpha1.PodProbeMarker) {
	r.touch(q, changed.Namespace, everyMarker, changed.Name)
}

// ownEvents returns a handler that makes each marker due that is created or changes, and the counts of
// one whose status alone changes: it is compared with the last findings, too.
func (r *Reconciler) ownEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *v1alpha1.PodProbeMarker, _ bool) {
		switch {
		case after == nil:
		case before == nil || !sameSpec(before, after):
			r.touch(q, after.Namespace, after.Name)
		case before.ResourceVersion != after.ResourceVersion:
			r.touchCounts(q, after.Namespace, after.Name)
		}
	})
}

// sameSpec reports whether both versions of a marker differ in their status at most.
func sameSpec(before, after *v1alpha1.PodProbeMarker) bool {
	return before.UID == after.UID && before.Generation == after.Generation && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		slices.Equal(before.Finalizers, after.Finalizers) && maps.Equal(before.Annotations, after.Annotations) && maps.Equal(before.Labels, after.Labels)
}

// podEvents returns a handler that makes the markers of a pod due when one of them starts or
// stops probing it, because other markers of the pod may win or lose keys. It ignores the pods
// that exist at the start, because all markers are due then.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *corev1.Pod, initial bool) {
		if before != nil && after != nil && r.Reader.Serverless && affected.IsVirtual(ctx, r.Reader, after) &&
			!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) {
			r.touchCounts(q, after.Namespace, everyMarker)
		}
		if initial || before == nil && !plan.Eligible(after) || before != nil && after != nil && sameInputs(before, after) {
			return
		}
		none := &corev1.Pod{}
		namespace, labels := cmp.Or(after, before).Namespace, []map[string]string{cmp.Or(before, none).Labels, cmp.Or(after, none).Labels}
		markers := affected.LogError(r.Reader.MarkersOf(ctx, namespace, labels...))(ctx)
		r.touch(q, namespace, probedBy(before, after, markers)...)
		r.touchCounts(q, namespace, contestedBy(before, after, markers)...)
	})
}

// statusEvents returns a handler that makes the counts due of markers whose states in the status of a
// NodePodProbe change, and the markers with errors when the status takes the place of the ProbeReports of
// the node or loses it.
func (r *Reconciler) statusEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *v1alpha1.NodePodProbe, _ bool) {
		r.touchChanged(q, statusStates(before), statusStates(after))
		if reportsInStatus(before) != reportsInStatus(after) {
			for _, slice := range affected.LogError(r.Reader.Slices(ctx, cmp.Or(after, before).Name))(ctx) {
				r.touchChanged(q, nil, slice.Pods)
			}
		}
	})
}

// reportsInStatus reports whether the object exists and its states are in its status.
func reportsInStatus(npp *v1alpha1.NodePodProbe) bool { return npp != nil && mark.InStatus(npp) }

// statusStates returns the entries of a status that take effect.
func statusStates(npp *v1alpha1.NodePodProbe) []seamarkv1alpha1.PodReport {
	if !reportsInStatus(npp) {
		return nil
	}
	return mark.StatusReports(npp)
}

// sliceEvents returns a handler that makes the markers due whose errors in ProbeReports change.
func (r *Reconciler) sliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbeReport, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *seamarkv1alpha1.ProbeReport, _ bool) {
		r.touchChanged(q, reportedPods(before), reportedPods(after))
	})
}

// reportedPods returns the entries of a ProbeReport that may be nil.
func reportedPods(slice *seamarkv1alpha1.ProbeReport) []seamarkv1alpha1.PodReport {
	if slice == nil {
		return nil
	}
	return slice.Pods
}

// touchChanged makes the markers due whose errors differ between two versions of a report, and the
// counts of those whose states do.
func (r *Reconciler) touchChanged(q controllers.Queue, before, after []seamarkv1alpha1.PodReport) {
	for _, marker := range mark.ChangedStates(before, after) {
		r.touchCounts(q, marker.Namespace, marker.Name)
	}
	for _, marker := range mark.ChangedErrors(before, after) {
		r.touch(q, marker.Namespace, marker.Name)
	}
}

// sameInputs reports whether the same markers probe both versions of the pod. After a lost watch,
// a pod and its successor with the same name appear as two versions of one object.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && plan.Eligible(before) == plan.Eligible(after) && maps.Equal(before.Labels, after.Labels)
}

// contestedBy returns the names of the markers for which the pod may have won or lost exclusive marks: its ticket, its group or one of the
// marks has changed.
func contestedBy(before, after *corev1.Pod, markers []*plan.Marker) []string {
	if before == nil || after == nil {
		return nil
	}
	changes := func(key string) bool { return before.Labels[key] != after.Labels[key] }
	var names []string
	for _, marker := range markers {
		if marker.Selects(after) && slices.ContainsFunc(marker.Exclusives(), func(e plan.Exclusive) bool {
			return changes(e.Ticket) || changes(e.Policy.Exclusive.PerLabel) || slices.ContainsFunc(e.Policy.LabelKeys(), changes)
		}) {
			names = append(names, marker.Name)
		}
	}
	return names
}

// probedBy returns the names of the markers that probe the pod before or after the change, if one of
// them does so only before or only after, or if it is another pod. It is nil before it is created and
// after it is deleted, when it may have ended already without an event.
func probedBy(before, after *corev1.Pod, markers []*plan.Marker) []string {
	var either []string
	changed := before != nil && after != nil && before.UID != after.UID
	for _, marker := range markers {
		probed := before != nil && (after == nil || plan.Eligible(before)) && marker.Matches(before)
		probes := after != nil && plan.Eligible(after) && marker.Matches(after)
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
