// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
)

// Add runs the Reconciler under the manager, fed from the informers, with at most
// concurrency reconciles at once.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controller.Add(mgr, "marker", controller.SubjectMarker, r, concurrency,
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.markerEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()))
}
