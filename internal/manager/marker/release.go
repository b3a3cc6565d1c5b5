// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

const (
	// minDelay and maxDelay limit the delay until the remains of a marker are looked for without an
	// event. In between, the delay is the time without progress, so it doubles.
	minDelay = time.Second
	maxDelay = time.Minute
	// patience is the time without progress after which the status names what blocks the
	// deletion. It is longer than plans take to settle.
	patience = 3 * time.Second
	// adviceDelay is the time without progress after which the status says how to proceed.
	adviceDelay = time.Minute
)

// delay is the state of one marker that is being deleted.
type delay struct {
	uid types.UID
	// left is the number of pods and plans that still have something of the marker.
	left int
	// progress is when left became smaller. next is when the remains are looked for without an
	// event.
	progress, next time.Time
}

// look returns the delay after left pods and plans were found to have something of the marker. It
// reports whether there was no event for the delay.
func (d delay) look(uid types.UID, left int, now time.Time) (after delay, due bool) {
	if d.uid != uid {
		return delay{uid: uid, left: left, progress: now, next: now.Add(minDelay)}, true
	}
	if left < d.left {
		d.progress, d.next = now, now.Add(minDelay)
	}
	d.left = left
	if due = !now.Before(d.next); due {
		d.next = now.Add(min(max(now.Sub(d.progress), minDelay), maxDelay))
	}
	return d, due
}

// Release removes the finalizer from the markers of a namespace that are being deleted when no plan
// and no pod has anything of them. Until then it looks for remains when a pod of the namespace or a
// plan changes, or after a delay that grows without progress, and then enqueues them for the
// controllers that clean them.
func (r *Reconciler) Release(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.pass(ctx, &r.deleted, request.Name, r.release)
}

// release handles the markers that have waited longest, and at most maxWrites of them.
func (r *Reconciler) release(ctx context.Context, all []*v1alpha1.PodProbeMarker, due []task) (rechecks []appointment, computed time.Duration, err error) {
	start := r.Now()
	var tasks []task
	for _, t := range due {
		switch {
		case t.marker.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(t.marker, v1alpha1.PodProbeMarkerFinalizer):
			r.delays.Forget(t.key())
		case len(tasks) == maxWrites:
			rechecks = append(rechecks, t.atOrBefore(start))
		default:
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return rechecks, 0, nil
	}
	found, err := r.findRemains(ctx, all, tasks)
	computed = r.Now().Sub(start)
	if err != nil {
		for _, t := range tasks {
			rechecks = append(rechecks, t.atOrBefore(start))
		}
		return rechecks, computed, err
	}
	isDue := false
	var failures []error
	for _, t := range tasks {
		next, due, err := r.releaseOne(ctx, t, found.blockages[t.marker.Name])
		isDue = isDue || due
		if err != nil {
			failures = append(failures, err)
			next = r.Now().Add(minDelay)
		}
		if !next.IsZero() {
			rechecks = append(rechecks, t.at(next))
		}
	}
	if isDue {
		r.enqueueRemains(found.objects)
	}
	return rechecks, computed, errors.Join(failures...)
}

// releaseOne removes the finalizer of a marker without remains. Otherwise it returns when the
// remains must be looked for without an event, and whether that is due now, and reports in the
// status what blocks the deletion.
func (r *Reconciler) releaseOne(ctx context.Context, t task, found *blockage) (next time.Time, due bool, err error) {
	left := found.pods.count + found.nodes.count
	if left == 0 {
		if err := r.unhold(ctx, t.marker); err != nil {
			return next, false, err
		}
		r.delays.Forget(t.key())
		return next, false, nil
	}
	now := r.Now()
	var d delay
	r.delays.Update(t.key(), func(last *delay) bool {
		*last, due = last.look(t.marker.UID, left, now)
		d = *last
		return true
	})
	stalled := now.Sub(d.progress)
	if !due || stalled < patience {
		return d.next, due, nil
	}
	found.advise = stalled >= adviceDelay
	_, err = r.writeStatus(ctx, t.marker, int(t.marker.Status.MatchedPods), []finding{found.finding()}, nil)
	return d.next, due, err
}

// enqueueRemains makes the controllers that write the pods and plans reconcile them, because no
// event may do so: the event of a pod or marker is handled after later changes of others. Objects
// whose last write failed are retried by their controllers. Pods are named by namespace and name,
// plans by the name of their node only.
func (r *Reconciler) enqueueRemains(objects sets.Set[types.NamespacedName]) {
	for object := range objects {
		switch {
		case r.Refusals.Reason(object) != "":
		case object.Namespace == "":
			r.Plans.Enqueue(object)
		default:
			r.Pods.Enqueue(object)
		}
	}
}

// deletedEvents returns a handler that makes the markers due that are being deleted, whenever they
// change.
func (r *Reconciler) deletedEvents() handler.TypedEventHandler[*v1alpha1.PodProbeMarker, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *v1alpha1.PodProbeMarker, _ bool) {
		if after != nil && (after.DeletionTimestamp == nil || before != nil && before.ResourceVersion == after.ResourceVersion) {
			return
		}
		marker := cmp.Or(after, before)
		r.deleted.add(marker.Namespace, appointment{marker.Name, r.Now()})
		enqueue(q, marker.Namespace)
	})
}

// wake makes the next pass look for the remains of all markers of the namespace that are being
// deleted.
func (r *Reconciler) wake(q controllers.Queue, namespace string) {
	if r.deleted.wake(namespace) {
		enqueue(q, namespace)
	}
}

// remainingPodEvents returns a handler that wakes the namespaces of pods that change or are gone.
func (r *Reconciler) remainingPodEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, _ *corev1.Pod, _ bool) {
		if before != nil {
			r.wake(q, before.Namespace)
		}
	})
}

// remainingPlanEvents returns a handler that wakes the namespaces whose pods a plan had before it
// changed. It ignores reported states.
func (r *Reconciler) remainingPlanEvents() handler.TypedEventHandler[*v1alpha1.NodePodProbe, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *v1alpha1.NodePodProbe, _ bool) {
		if before == nil || after != nil && before.UID == after.UID && before.Generation == after.Generation {
			return
		}
		r.wakePlanned(q, before.Spec.PodProbes)
		if after == nil || len(after.Spec.RemovedPods) == 0 {
			return
		}
		// Without the ProbePlans, a later pass looks.
		stored, _ := r.Reader.ProbePlans(ctx, before.Name)
		for _, slice := range stored {
			r.wakePlanned(q, slices.DeleteFunc(slices.Clone(slice.Pods), func(pod v1alpha1.PodProbe) bool {
				return slices.Contains(before.Spec.RemovedPods, pod.UID) || !slices.Contains(after.Spec.RemovedPods, pod.UID)
			}))
		}
	})
}

// remainingSliceEvents returns a handler that wakes the namespaces whose pods a ProbePlan had before it
// changed.
func (r *Reconciler) remainingSliceEvents() handler.TypedEventHandler[*seamarkv1alpha1.ProbePlan, reconcile.Request] {
	return controllers.Changes(func(_ context.Context, q controllers.Queue, before, after *seamarkv1alpha1.ProbePlan, _ bool) {
		if before != nil && (after == nil || before.UID != after.UID || before.Generation != after.Generation) {
			r.wakePlanned(q, before.Pods)
		}
	})
}

func (r *Reconciler) wakePlanned(q controllers.Queue, pods []v1alpha1.PodProbe) {
	namespaces := sets.New[string]()
	for i := range pods {
		namespaces.Insert(pods[i].Namespace)
	}
	for namespace := range namespaces {
		r.wake(q, namespace)
	}
}
