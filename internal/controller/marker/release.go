// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/serverless"
	"github.com/seamark-dev/seamark/internal/view"
)

// release removes the finalizer from a deleted marker, or checks again soon if a plan or a
// pod still has something of it.
func (r *Reconciler) release(ctx context.Context, marker *v1alpha1.PodProbeMarker) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return reconcile.Result{}, nil
	}
	inUse, err := r.isPlanned(ctx, marker)
	if err == nil && !inUse {
		inUse, err = r.isMarked(ctx, marker)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if inUse {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	released := marker.DeepCopy()
	controllerutil.RemoveFinalizer(released, v1alpha1.PodProbeMarkerFinalizer)
	if err := r.Markers.Finalizers(ctx, marker, released.Finalizers); err != nil {
		return outdated(err)
	}
	log.FromContext(ctx).V(logging.Writes).Info("Released marker")
	return reconcile.Result{}, nil
}

// isPlanned reports whether a plan has a probe of the marker.
func (r *Reconciler) isPlanned(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	var all v1alpha1.NodePodProbeList
	if err := r.Reader.Client.List(ctx, &all); err != nil {
		return false, fmt.Errorf("list NodePodProbes: %w", err)
	}
	for i := range all.Items {
		if contains(&all.Items[i].Spec, marker) {
			return true, nil
		}
	}
	return false, nil
}

// contains reports whether the plan has a probe of the marker.
func contains(spec *v1alpha1.NodePodProbeSpec, marker *v1alpha1.PodProbeMarker) bool {
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

// isMarked reports whether a pod of the namespace still has marks of the marker, or an
// annotation that passes its probes to a provider. The cache keeps these annotations only if
// support for pods on virtual nodes is enabled.
func (r *Reconciler) isMarked(ctx context.Context, marker *v1alpha1.PodProbeMarker) (bool, error) {
	// They include the marker, which selects nothing because it is being deleted.
	markers, err := r.Reader.Markers(ctx, marker.Namespace)
	if err != nil {
		return false, err
	}
	pods, err := r.Reader.NamespacePods(ctx, marker.Namespace)
	if err != nil {
		return false, err
	}
	keys := declared(marker)
	for i := range pods {
		pod := &pods[i]
		if plan.Ending(pod) {
			continue
		}
		if serverless.Of(pod).Names(marker.Name) {
			return true, nil
		}
		if mark.Entry(pod.ManagedFields) == nil {
			continue
		}
		v, err := r.Reader.Pod(ctx, pod, markers)
		if err != nil {
			return false, err
		}
		remaining, err := hasRemains(v, keys)
		if err != nil || remaining {
			return remaining, err
		}
	}
	return false, nil
}

// hasRemains reports whether the pod has a mark that none of its probes requires, or has one
// of the keys with another value than the required one. Wrong values of other keys do not
// matter, because they may be about to change.
func hasRemains(v view.Pod, keys sets.Set[mark.Key]) (bool, error) {
	owned, err := mark.Owned(v.Object)
	if err != nil {
		return false, err
	}
	desired := v.Desired(owned)
	for key := range owned {
		if !desired.Has(key) {
			return true, nil
		}
	}
	return !owned.Only(keys).Equal(desired.Only(keys)), nil
}
