// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/plan"
)

// release removes the finalizer from a marker that is being deleted when no plan and no pod has
// anything of it. It lists plans and pods once to find those that have, enqueues them for the
// controllers that clean them, and then checks only those that change. A second list confirms
// that nothing is left.
func (r *Reconciler) release(ctx context.Context, marker *v1alpha1.PodProbeMarker) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(marker)
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		r.releases.forget(key)
		return reconcile.Result{}, nil
	}
	if r.releases.tracks(key, marker.UID) {
		left, err := r.recheck(ctx, marker)
		if err != nil || left > 0 {
			return reconcile.Result{RequeueAfter: r.releases.delay(key, r.Now())}, err
		}
	}
	found, err := r.findRemains(ctx, marker)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(found) == 0 {
		return r.unhold(ctx, marker)
	}
	r.releases.start(key, marker.UID, found, r.Now())
	r.enqueueRemains(found)
	if _, err := r.recheck(ctx, marker); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.releases.delay(key, r.Now())}, nil
}

// recheck returns how many objects still have something of the marker. It checks those that
// changed. When there have been no events for long enough, it checks all, enqueues them again,
// and reports what blocks the deletion in the status.
func (r *Reconciler) recheck(ctx context.Context, marker *v1alpha1.PodProbeMarker) (int, error) {
	key := client.ObjectKeyFromObject(marker)
	objects, due := r.releases.take(key, r.Now())
	clean, err := r.cleanOf(ctx, marker, objects)
	if err != nil {
		r.releases.again(key, objects)
		return 0, err
	}
	left, stalled := r.releases.clean(key, clean, r.Now())
	if !due || left == 0 {
		return left, nil
	}
	rest := objects.Difference(clean)
	r.enqueueRemains(r.notRefused(rest))
	if stalled < patience {
		return left, nil
	}
	f, err := r.blocked(ctx, marker, rest, stalled)
	if err != nil {
		return 0, err
	}
	_, err = outdated(r.writeStatus(ctx, marker, int(marker.Status.MatchedPods), []finding{f}))
	return left, err
}

// hold adds the finalizer. The write enqueues the marker again, for its status. Other events may
// do so before the cache has the write, and then hold does not repeat it.
func (r *Reconciler) hold(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	key := client.ObjectKeyFromObject(marker)
	if _, unseen := r.held.Unseen(key, marker.UID, marker.ResourceVersion); unseen {
		return nil
	}
	held := marker.DeepCopy()
	controllerutil.AddFinalizer(held, v1alpha1.PodProbeMarkerFinalizer)
	version, err := r.Markers.Finalizers(ctx, marker, held.Finalizers)
	if err != nil {
		return err //nolint:wrapcheck // apply wraps errors.
	}
	r.held.Wrote(key, marker.UID, version, struct{}{})
	return nil
}

// unhold removes the finalizer.
func (r *Reconciler) unhold(ctx context.Context, marker *v1alpha1.PodProbeMarker) (reconcile.Result, error) {
	released := marker.DeepCopy()
	controllerutil.RemoveFinalizer(released, v1alpha1.PodProbeMarkerFinalizer)
	if _, err := r.Markers.Finalizers(ctx, marker, released.Finalizers); err != nil {
		return outdated(err)
	}
	r.releases.forget(client.ObjectKeyFromObject(marker))
	log.FromContext(ctx).V(logging.Writes).Info("Released marker")
	return reconcile.Result{}, nil
}

// findRemains returns the pods and plans that have something of the marker.
func (r *Reconciler) findRemains(ctx context.Context, marker *v1alpha1.PodProbeMarker) (sets.Set[types.NamespacedName], error) {
	found := sets.New[types.NamespacedName]()
	nodes, err := r.Reader.Planned(ctx, client.ObjectKeyFromObject(marker))
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		found.Insert(types.NamespacedName{Name: node})
	}
	// They include the marker, which selects nothing because it is being deleted.
	markers, err := r.Reader.Markers(ctx, marker.Namespace)
	if err != nil {
		return nil, err
	}
	pods, err := r.Reader.NamespacePods(ctx, marker.Namespace)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		remains, err := r.podRemains(ctx, marker, pod, markers)
		if err != nil {
			return nil, err
		}
		if remains.any() {
			found.Insert(client.ObjectKeyFromObject(pod))
		}
	}
	return found, nil
}

// cleanOf returns those of the pods and plans that have nothing of the marker.
func (r *Reconciler) cleanOf(ctx context.Context, marker *v1alpha1.PodProbeMarker, objects sets.Set[types.NamespacedName]) (sets.Set[types.NamespacedName], error) {
	clean := sets.New[types.NamespacedName]()
	if len(objects) == 0 {
		return clean, nil
	}
	markers, err := r.Reader.Markers(ctx, marker.Namespace)
	if err != nil {
		return nil, err
	}
	for object := range objects {
		if isNode(object) {
			npp, err := r.Reader.NodePodProbe(ctx, object.Name)
			if err != nil {
				return nil, err
			}
			if npp == nil || !plan.Contains(&npp.Spec, client.ObjectKeyFromObject(marker)) {
				clean.Insert(object)
			}
			continue
		}
		pod, err := r.Reader.LivePod(ctx, object)
		if err != nil {
			return nil, err
		}
		remains, err := r.podRemains(ctx, marker, pod, markers)
		if err != nil {
			return nil, err
		}
		if !remains.any() {
			clean.Insert(object)
		}
	}
	return clean, nil
}

// isNode reports whether the object is the plan of a node rather than a pod.
func isNode(object types.NamespacedName) bool { return object.Namespace == "" }

// enqueueRemains makes the controllers that write the pods and plans reconcile them, because no
// event may do so: the event of a pod or marker is handled after later changes of others.
func (r *Reconciler) enqueueRemains(objects sets.Set[types.NamespacedName]) {
	for object := range objects {
		if isNode(object) {
			r.Plans.Enqueue(object)
		} else {
			r.Pods.Enqueue(object)
		}
	}
}

// notRefused returns the objects whose last write did not fail. The others are retried by their
// controllers.
func (r *Reconciler) notRefused(objects sets.Set[types.NamespacedName]) sets.Set[types.NamespacedName] {
	rest := sets.New[types.NamespacedName]()
	for object := range objects {
		if r.Refusals.Of(object) == "" {
			rest.Insert(object)
		}
	}
	return rest
}
