// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

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
	sources := []source.Source{
		source.Kind(informers, &v1alpha1.NodePodProbe{}, r.reportEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.markerEvents()),
	}
	if r.Serverless {
		sources = append(sources, source.Kind(informers, controller.NewNode(), r.nodeEvents()))
	}
	return controller.Add(mgr, "podmark", controller.SubjectPod, r, concurrency, sources...)
}
