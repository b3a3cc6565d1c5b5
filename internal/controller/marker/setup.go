// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// concurrency is how many markers are looked at at once.
const concurrency = 4

// timeout bounds one reconcile, whatever became of the connection to the API server.
const timeout = 30 * time.Second

// Add runs the Reconciler under the manager, fed from the informers. It follows them
// from the start, whether or not the manager leads, so that a new leader knows them.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache) error {
	warm := true
	c, err := controller.New("marker", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrency,
		EnableWarmup:            &warm,
		ReconciliationTimeout:   timeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			10*time.Millisecond, 30*time.Second),
	})
	if err != nil {
		return fmt.Errorf("making the controller marker: %w", err)
	}
	for _, src := range []source.Source{
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, r.markerEvents()),
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
	} {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("watching for the controller marker: %w", err)
		}
	}
	return nil
}
