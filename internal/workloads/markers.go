// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// ErrMarkersServed is the error of Run if the API server serves PodProbeMarkers now and did not at the
// start. The program must be started again, as the kubelet does, so that planners see the markers.
var ErrMarkersServed = errors.New("the CRD of PodProbeMarkers has been installed: start again to watch them")

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

// markerWait ends the program when the API server serves PodProbeMarkers. It implements
// manager.Runnable.
type markerWait struct {
	mapper meta.RESTMapper
	log    logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standbys need the markers, too.
func (*markerWait) NeedLeaderElection() bool { return false }

// Start looks for the CRD until the context ends. It returns ErrMarkersServed when it is there.
func (w *markerWait) Start(ctx context.Context) error {
	served := false
	_ = wait.PollUntilContextCancel(ctx, markerPeriod, false, func(context.Context) (bool, error) {
		var err error
		if served, err = servesMarkers(w.mapper); err != nil {
			w.log.V(logging.Writes).Info("Failed to look for the CRD of PodProbeMarkers, retrying", "reason", err.Error())
		}
		return served, nil
	})
	if served {
		return ErrMarkersServed
	}
	return nil // The context has ended.
}
