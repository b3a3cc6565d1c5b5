// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
)

// caches returns the options of the manager's cache, which keeps only the fields that views
// are built from. Readers share the cached objects without a copy, because no controller
// changes what it reads.
// The web page also shows the controllers of pods.
func caches(options view.Options, withPage bool) cache.Options {
	pods := view.NewPodTrimmer(options)
	if withPage {
		pods = pods.WithControllers()
	}
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {
				Field:     gather.LivePods(),
				Transform: view.Transform(pods.Trim),
			},
			gather.NewNode():               {Transform: view.Transform(view.TrimNode)},
			&v1alpha1.PodProbeMarker{}:     {},
			&v1alpha1.NodePodProbe{}:       {Transform: view.Transform(view.NewPlanTrimmer().Trim)},
			&seamarkv1alpha1.ProbeReport{}: {Transform: view.Transform(view.TrimReport)},
		},
	}
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
