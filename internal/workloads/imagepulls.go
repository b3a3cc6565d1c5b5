// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	imagepulljob "github.com/seamark-dev/seamark/internal/workloads/imagepull/controller"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// addImagePulls adds the controller of ImagePullJobs, if it is enabled.
func (w *Workloads) addImagePulls(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard, census *census) error {
	enabled, limits := w.options.Controllers.ImagePullJob, w.options.ImagePull
	if !*enabled.Enabled {
		return nil
	}
	allowed, err := metav1.LabelSelectorAsSelector(limits.NodeSelector)
	if err != nil {
		return fmt.Errorf("imagePull.nodeSelector: %w", err)
	}
	jobs, err := startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.ImagePullJob{}, nil)
	if err != nil {
		return err
	}
	kind := imagepull.Kind().Kind
	census.kinds[kind] = countAll(imagepulljob.Count, jobs)
	gate := reconciler.NewGate()
	guard.gates[kind] = gate
	return imagepulljob.New(imagepulljob.Options{
		Jobs: jobs, Pods: shared.Stores.Pods, Nodes: shared.Stores.Nodes, Allowed: allowed, PerNode: int(limits.PerNode), Total: int(limits.Total),
		Gate: gate, Client: shared.Client, Live: mgr.GetAPIReader(), Recorder: shared.Recorder, Metrics: shared.Metrics, Now: shared.Now,
	}).Add(mgr, mgr.GetCache(), int(enabled.Concurrency))
}
