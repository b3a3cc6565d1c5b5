// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/view"
	"github.com/seamark-dev/seamark/internal/view/gather"
)

// caches returns the options of the manager's cache, which keeps only the fields that views
// are built from. Readers share the cached objects without a copy, because no controller
// changes what it reads. Pods that have ended are not cached: a pod that ends counts as deleted,
// and keeps its marks.
func caches(options view.Options) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field: fields.AndSelectors(
					fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
					fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
				Transform: view.Transform(view.NewPodTrimmer(options).Trim),
			},
			gather.NewNode():               {Transform: view.Transform(view.TrimNode)},
			&v1alpha1.PodProbeMarker{}:     {},
			&v1alpha1.NodePodProbe{}:       {Transform: view.Transform(view.NewPlanTrimmer().Trim)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: view.Transform(view.TrimReport)},
		},
	}
}

// sliceIndex is the index of ProbeReports by node. A pod is found among the few entries of its
// node: an index by pod takes as much memory as a tenth of the cached pods.
func sliceIndex() toolscache.Indexers {
	return toolscache.Indexers{gather.SliceNodeIndex: func(object any) ([]string, error) {
		if slice, ok := object.(*seamarkv1alpha1.ProbeReport); ok {
			return []string{gather.NodeKey(slice.NodeName)}, nil
		}
		return nil, nil
	}}
}

// nodeIndex is the index of pods by node that the cache's reader uses for lists by
// gather.NodeNameField. The cache's own IndexField would also index the pods by namespace and node,
// which takes a fifth of the memory of a pod and is not used.
func nodeIndex() toolscache.Indexers {
	return toolscache.Indexers{gather.PodNodeIndex: func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{gather.NodeKey(pod.Spec.NodeName)}, nil
		}
		return nil, nil
	}}
}

// newStores returns the informers that are listed without a copy.
func newStores(ctx context.Context, informers cache.Cache) (gather.Stores, error) {
	var stores gather.Stores
	for object, store := range map[client.Object]*gather.Store{
		&corev1.Pod{}: &stores.Pods, &v1alpha1.PodProbeMarker{}: &stores.Markers, &seamarkv1alpha1.ProbeReport{}: &stores.Slices,
	} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return stores, fmt.Errorf("get the informer of %T: %w", object, err)
		}
		indexed, ok := informer.(gather.Store)
		if !ok {
			return stores, fmt.Errorf("informer %T of %T has no indexer", informer, object)
		}
		*store = indexed
	}
	return stores, nil
}
