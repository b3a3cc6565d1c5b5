// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller/workload"
	"github.com/seamark-dev/seamark/internal/logging"
)

// markerPeriod is the time between two looks at whether the API server serves PodProbeMarkers.
const markerPeriod = 10 * time.Second

// servesMarkers reports whether the API server serves PodProbeMarkers, which are optional.
func servesMarkers(mapper meta.RESTMapper) (bool, error) {
	kind := v1alpha1.GroupVersion().WithKind("PodProbeMarker")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil || meta.IsNoMatchError(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("discover podprobemarkers: %w", err)
}

// markerWatch starts to watch PodProbeMarkers when their CRD is installed after the program started. It
// implements manager.Runnable.
type markerWatch struct {
	mapper    meta.RESTMapper
	informers cache.Cache
	markers   *workload.Markers
	log       logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standbys have synced caches, too.
func (*markerWatch) NeedLeaderElection() bool { return false }

// Start looks for the CRD until it is there or the context ends.
func (w *markerWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(markerPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		switch served, err := servesMarkers(w.mapper); {
		case err != nil:
			w.log.V(logging.Writes).Info("Failed to look for the CRD of PodProbeMarkers, retrying", "reason", err.Error())
		case served:
			return w.watch(ctx)
		}
	}
}

// watch waits until the informer is synced, so that planners see all markers or none.
func (w *markerWatch) watch(ctx context.Context) error {
	marker := &v1alpha1.PodProbeMarker{}
	if _, err := w.informers.GetInformer(ctx, marker); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The program ends.
		}
		return fmt.Errorf("watch podprobemarkers: %w", err)
	}
	store, err := newStore(ctx, w.informers, marker, nil)
	if err != nil {
		return err
	}
	w.markers.Serve(store)
	w.log.Info("Watching PodProbeMarkers, whose CRD has been installed")
	return nil
}
