// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// addBroadcastJobs adds the controller of BroadcastJobs, if it is enabled.
func (w *Workloads) addBroadcastJobs(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard, census *census) error {
	enabled := w.options.Controllers.BroadcastJob
	if !*enabled.Enabled {
		return nil
	}
	jobs, err := startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.BroadcastJob{}, nil)
	if err != nil {
		return err
	}
	kind := broadcastjob.Kind().Kind
	census.kinds[kind] = countAll(controller.Count, jobs)
	gate := reconciler.NewGate()
	guard.gates[kind] = gate
	return controller.New(controller.Options{
		Jobs: jobs, Pods: shared.Stores.Pods, Nodes: shared.Stores.Nodes, Gate: gate, Executor: shared.Executor,
		Client: shared.Client, Live: mgr.GetAPIReader(), Recorder: shared.Recorder, Metrics: shared.Metrics, Now: shared.Now,
	}).Add(mgr, mgr.GetCache(), int(enabled.Concurrency))
}
