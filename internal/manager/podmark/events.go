// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	sources := []source.Source{
		source.Kind(informers, &seamarkv1alpha1.ProbeReport{}, r.sliceEvents()),
		source.Kind(informers, &v1alpha1.NodePodProbe{}, r.statusEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controllers.MarkerEvents(r.enqueueSelected)),
		r.Inbox.Source(),
	}
	if r.Reader.Serverless {
		sources = append(sources, source.Kind(informers, gather.NewNode(), r.nodeEvents()))
	}
	return controllers.Add(mgr, "podmark", controllers.SubjectPod, r, concurrency, sources...)
}

// sliceEvents returns a handler that enqueues the pods whose states in ProbeReports change.
func (r *Reconciler) sliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbeReport, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *seamarkv1alpha1.ProbeReport, initial bool) {
		none := &seamarkv1alpha1.ProbeReport{}
		// If one is deleted, another one may have an entry of the same pod, which takes effect now.
		r.enqueueReported(q, cmp.Or(before, none).Pods, cmp.Or(after, none).Pods, !initial)
	})
}

// statusEvents returns a handler that enqueues the pods whose states in the status of a NodePodProbe
// change, and all pods of the node when its states move from the status to ProbeReports or back.
func (r *Reconciler) statusEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *v1alpha1.NodePodProbe, initial bool) {
		if after == nil || initial && !mark.InStatus(after) {
			// The events of the ProbeReports enqueue the pods.
			return
		}
		before = cmp.Or(before, &v1alpha1.NodePodProbe{})
		r.enqueueReported(q, mark.StatusReports(before), mark.StatusReports(after), !initial)
		if initial {
			return
		}
		if mark.InStatus(before) != mark.InStatus(after) {
			// Pods without an entry in the other source may have to lose marks.
			enqueuePods(q, affected.LogError(r.Reader.NodePods(ctx, after.Name))(ctx))
		}
	})
}

// enqueueReported enqueues the pods whose entries differ. live is false for reports that existed
// at the start: their latency is not measured, and pods without states are not enqueued, because
// those that have marks are enqueued for these.
func (r *Reconciler) enqueueReported(q controllers.Queue, before, after []seamarkv1alpha1.PodReport, live bool) {
	if !live {
		after = slices.DeleteFunc(slices.Clone(after), func(pod seamarkv1alpha1.PodReport) bool { return len(pod.Probes) == 0 })
	}
	now := r.Now()
	for _, pod := range mark.Changed(before, after) {
		if live {
			r.noteReported(pod, now)
		}
		controllers.Enqueue(q, pod)
	}
}

// podEvents returns a handler that enqueues a pod when the marks that it should have, or those
// that it has, may change.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q controllers.Queue) {
			// A report that arrived before the pod did not find a pod to mark.
			late := !e.IsInInitialList && plan.Eligible(e.Object)
			if late || r.isProvided(ctx, e.Object) || mark.Entry(e.Object.ManagedFields) != nil {
				controllers.Enqueue(q, client.ObjectKeyFromObject(e.Object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q controllers.Queue) {
			key := client.ObjectKeyFromObject(e.ObjectNew)
			if e.ObjectOld.UID != e.ObjectNew.UID {
				r.forget(key)
			}
			r.expectations.Observe(key, e.ObjectNew.UID, e.ObjectNew.ResourceVersion)
			reported := r.isProviderReport(ctx, e.ObjectOld, e.ObjectNew)
			if reported {
				r.noteReported(key, r.Now())
			}
			// Any change of the pod may make room for marks that were refused.
			_, refused := r.refused.Get(key)
			// With the same labels, the markers do not matter for the plan.
			if reported || refused || !sameMarks(e.ObjectOld, e.ObjectNew) || !plan.SamePlan(e.ObjectOld, e.ObjectNew, nil) {
				controllers.Enqueue(q, key)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q controllers.Queue) {
			key := client.ObjectKeyFromObject(e.Object)
			r.reportedAt.Forget(key)
			r.forget(key)
			// A reconcile that runs now may remember the pod again. The next one forgets it.
			controllers.Enqueue(q, key)
		},
	}
}

// nodeEvents returns a handler that enqueues the pods of new virtual nodes, and of nodes that
// become virtual nodes or cease to be virtual nodes.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return affected.NodeEvents(r.enqueueIfVirtual, r.enqueueNodePods)
}

// sameMarks reports whether both versions of the pod have the same marks, the same labels and
// annotations that may be declared by a marker, and the same marks that other managers own too. It
// compares what these are read from, because it is called for every change of every pod.
func sameMarks(before, after *corev1.Pod) bool {
	return maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) &&
		mark.SameFields(before.ManagedFields, after.ManagedFields) &&
		slices.EqualFunc(conditions(before), conditions(after), func(a, b corev1.PodCondition) bool { return equality.Semantic.DeepEqual(a, b) })
}

// conditions returns the conditions of the pod that may be marks.
func conditions(pod *corev1.Pod) []corev1.PodCondition {
	var found []corev1.PodCondition
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; !v1alpha1.IsNativePodCondition(c.Type) {
			found = append(found, *c)
		}
	}
	return found
}

func (r *Reconciler) enqueueSelected(ctx context.Context, q controllers.Queue, marker *v1alpha1.PodProbeMarker) {
	enqueuePods(q, affected.LogError(r.Reader.SelectedPods(ctx, marker))(ctx))
}

func (r *Reconciler) enqueueNodePods(ctx context.Context, q controllers.Queue, node *metav1.PartialObjectMetadata) {
	enqueuePods(q, affected.LogError(r.Reader.NodePods(ctx, node.Name))(ctx))
}

func (r *Reconciler) enqueueIfVirtual(ctx context.Context, q controllers.Queue, node *metav1.PartialObjectMetadata) {
	if serverless.IsVirtual(node.Labels) {
		r.enqueueNodePods(ctx, q, node)
	}
}

// isProvided reports whether a provider probes the pod, so that the pod's conditions matter.
func (r *Reconciler) isProvided(ctx context.Context, pod *corev1.Pod) bool {
	return r.Reader.Serverless && affected.IsVirtual(ctx, r.Reader, pod)
}

// isProviderReport reports whether the change of the pod may be a report of its provider.
func (r *Reconciler) isProviderReport(ctx context.Context, before, after *corev1.Pod) bool {
	return r.Reader.Serverless && !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) &&
		r.isProvided(ctx, after)
}

// enqueuePods adds the pods to the queue.
func enqueuePods(q controllers.Queue, pods []*corev1.Pod) {
	for _, pod := range pods {
		controllers.Enqueue(q, client.ObjectKeyFromObject(pod))
	}
}
