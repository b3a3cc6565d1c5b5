// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
)

// addMetrics registers the manager's own metrics: what the controllers count, which it
// returns, and what is read from the caches at each scrape.
func addMetrics(ctx context.Context, mgr ctrlmanager.Manager, options Options) (*metrics.Metrics, error) {
	counters, err := metrics.New(options.Registry)
	if err != nil {
		return nil, err
	}
	plans, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodePodProbe{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following the NodePodProbes for the metrics: %w", err)
	}
	pending := metrics.NewPending(time.Now)
	if _, err := plans.AddEventHandler(pending); err != nil {
		return nil, fmt.Errorf("following the NodePodProbes for the metrics: %w", err)
	}
	err = errors.Join(
		options.Registry.Register(metrics.Info(options.Version)),
		options.Registry.Register(metrics.NewCollector(metrics.CollectorOptions{
			Cache: mgr.GetCache(), Pending: pending, Leads: mgr.Elected(),
		})),
	)
	if err != nil {
		return nil, fmt.Errorf("registering the manager's metrics: %w", err)
	}
	return counters, nil
}
