// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/startup"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	broadcasts "github.com/seamark-dev/seamark/internal/workloads/broadcastjob/controller"
	advancedcronjob "github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	pulls "github.com/seamark-dev/seamark/internal/workloads/imagepull/controller"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// addJobs adds the enabled controllers of AdvancedCronJobs, BroadcastJobs and ImagePullJobs.
func (w *Workloads) addJobs(ctx context.Context, mgr ctrlmanager.Manager, shared reconciler.Options, guard *guard, census *census) error {
	enabled, limits, live := w.options.Controllers, w.options.ImagePull, mgr.GetAPIReader()
	allowed, err := metav1.LabelSelectorAsSelector(limits.NodeSelector)
	if err != nil {
		return fmt.Errorf("imagePull.nodeSelector: %w", err)
	}
	crons, err := w.cronOptions(ctx, mgr)
	if err != nil {
		return err
	}
	return errors.Join(
		addKind(ctx, mgr, enabled.AdvancedCronJob, advancedcronjob.Kind().Kind, &v1alpha1.AdvancedCronJob{}, shared, guard, census,
			func(options reconciler.Options) *advancedcronjob.Controller {
				crons.Options = options
				return advancedcronjob.New(crons)
			}),
		addKind(ctx, mgr, enabled.BroadcastJob, broadcastjob.Kind().Kind, &v1alpha1.BroadcastJob{}, shared, guard, census,
			func(options reconciler.Options) *broadcasts.Controller {
				return broadcasts.New(nodejob.Options{Options: options, Live: live})
			}),
		addKind(ctx, mgr, enabled.ImagePullJob, imagepull.Kind().Kind, &v1alpha1.ImagePullJob{}, shared, guard, census,
			func(options reconciler.Options) *pulls.Controller {
				return pulls.New(nodejob.Options{Options: options, Live: live},
					pulls.Limits{Allowed: allowed, PerNode: int(limits.PerNode), Total: int(limits.Total)})
			}),
	)
}

// cronOptions returns the dependencies of the controller of AdvancedCronJobs that no other has, if it is enabled.
func (w *Workloads) cronOptions(ctx context.Context, mgr ctrlmanager.Manager) (advancedcronjob.Options, error) {
	options, err := advancedcronjob.Options{Live: mgr.GetAPIReader()}, error(nil)
	if !*w.options.Controllers.AdvancedCronJob.Enabled {
		return options, nil
	}
	if options.Jobs, err = startup.NewStore(ctx, mgr.GetCache(), &batchv1.Job{}, reconciler.PodIndexers()); err != nil {
		return options, err
	}
	if *w.options.Controllers.BroadcastJob.Enabled {
		options.BroadcastJobs, err = startup.NewStore(ctx, mgr.GetCache(), &v1alpha1.BroadcastJob{}, reconciler.PodIndexers())
	}
	return options, err
}
