// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// release takes the finalizer off a marker of which nothing is left, and looks again
// soon where something is.
func (r *Reconciler) release(ctx context.Context, marker *v1alpha1.PodProbeMarker) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return reconcile.Result{}, nil
	}
	planned, err := r.isPlanned(ctx, marker)
	if err != nil {
		return reconcile.Result{}, err
	}
	if planned {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	marked, err := r.isMarked(ctx, marker)
	if err != nil {
		return reconcile.Result{}, err
	}
	if marked {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	released := marker.DeepCopy()
	controllerutil.RemoveFinalizer(released, v1alpha1.PodProbeMarkerFinalizer)
	log.FromContext(ctx).V(logging.Writes).Info("Releasing marker")
	return r.setFinalizers(ctx, marker, released.Finalizers)
}

func (r *Reconciler) isPlanned(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	var all v1alpha1.NodePodProbeList
	if err := r.Cache.List(ctx, &all); err != nil {
		return false, fmt.Errorf("listing the plans: %w", err)
	}
	for i := range all.Items {
		if holds(&all.Items[i].Spec, marker) {
			return true, nil
		}
	}
	return false, nil
}

// holds tells whether the plan has a probe of the marker.
func holds(spec *v1alpha1.NodePodProbeSpec, marker *v1alpha1.PodProbeMarker) bool {
	for i := range spec.PodProbes {
		pod := &spec.PodProbes[i]
		if pod.Namespace != marker.Namespace {
			continue
		}
		for j := range pod.Probes {
			if id, err := probeid.Parse(pod.Probes[j].Name); err == nil && id.Marker == marker.Name {
				return true
			}
		}
	}
	return false
}

// isMarked tells whether a pod of the namespace still has marks that the marker made, or
// hands its probes to a provider. The informers have the annotations for that only where
// they are looked after.
func (r *Reconciler) isMarked(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	// The marker is being deleted, so it is among these and selects nothing.
	markers, err := controller.Markers(ctx, r.Cache, r.Compiler, marker.Namespace)
	if err != nil {
		return false, err
	}
	var pods corev1.PodList
	if err := r.Cache.List(ctx, &pods, client.InNamespace(marker.Namespace)); err != nil {
		return false, fmt.Errorf("listing the pods of namespace %s: %w", marker.Namespace, err)
	}
	keys := declared(marker)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if plan.Ending(pod) {
			continue
		}
		if serverless.Of(pod).Names(marker.Name) {
			return true, nil
		}
		if mark.Entry(pod.ManagedFields) == nil {
			continue
		}
		probes, report, err := r.prober.Probed(ctx, pod, markers)
		if err != nil {
			return false, err
		}
		left, err := leftOver(pod, probes, report, keys)
		if err != nil || left {
			return left, err
		}
	}
	return false, nil
}

// leftOver tells whether the pod carries a mark that none of its probes calls for, or
// has under one of the keys another value than they call for. Marks of other keys may
// be on their way and are no concern.
func leftOver(pod *corev1.Pod, probes []plan.PlannedProbe, report mark.PodReport, keys sets.Set[mark.Key]) (bool, error) {
	owned, err := mark.Owned(pod)
	if err != nil {
		return false, fmt.Errorf("finding the marks that are on the pod: %w", err)
	}
	desired := mark.Desired(probes, report, owned)
	for _, key := range owned.Keys() {
		if !desired.Has(key) {
			return true, nil
		}
	}
	return !owned.Only(keys).Equal(desired.Only(keys)), nil
}
