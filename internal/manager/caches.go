// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/view"
	"github.com/seamark-dev/seamark/internal/view/gather"
)

// caches returns the options of the manager's cache, which keeps only the fields that views
// are built from. Readers share the cached objects without a copy, because no controller
// changes what it reads.
func caches(options view.Options) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
		DefaultTransform:             cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:              {Transform: view.Transform(options.TrimPod)},
			gather.NewNode():           {Transform: view.Transform(view.TrimNode)},
			&v1alpha1.PodProbeMarker{}: {},
			&v1alpha1.NodePodProbe{}:   {},
		},
	}
}
