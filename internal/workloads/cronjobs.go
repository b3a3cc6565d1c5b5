// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	advancedcronjob "github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// addCronJobs adds the controller of AdvancedCronJobs, if it is enabled.
func (w *Workloads) addCronJobs(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard, census *census) error {
	enabled := w.options.Controllers.AdvancedCronJob
	if !*enabled.Enabled {
		return nil
	}
	objects, err := startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.AdvancedCronJob{}, nil)
	if err != nil {
		return err
	}
	jobs, err := startup.NewStore(ctx, mgr.GetCache(), &batchv1.Job{}, reconciler.PodIndexers())
	if err != nil {
		return err
	}
	var broadcastJobs reconciler.Store
	if *w.options.Controllers.BroadcastJob.Enabled {
		if broadcastJobs, err = startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.BroadcastJob{}, reconciler.PodIndexers()); err != nil {
			return err
		}
	}
	census.kinds[advancedcronjob.Kind().Kind] = countAll(advancedcronjob.Count, objects)
	gate := reconciler.NewGate()
	guard.gates[advancedcronjob.Kind().Kind] = gate
	return advancedcronjob.New(advancedcronjob.Options{
		Objects: objects, Jobs: jobs, BroadcastJobs: broadcastJobs, Gate: gate, Client: shared.Client, Live: mgr.GetAPIReader(), Recorder: shared.Recorder,
		Metrics: shared.Metrics, Now: shared.Now,
	}).Add(mgr, mgr.GetCache(), int(enabled.Concurrency))
}
