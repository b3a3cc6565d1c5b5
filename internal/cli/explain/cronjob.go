// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
)

// jobs reads what an AdvancedCronJob has created.
func (r *reading) jobs(ctx context.Context, creator client.Object) []cronjob.Job {
	object, ok := creator.(*v1alpha1.AdvancedCronJob)
	if !ok {
		return nil
	}
	var found []cronjob.Job
	add := func(job cronjob.Job) {
		if metav1.IsControlledBy(job, object) {
			found = append(found, job)
		}
	}
	if object.Spec.Template.BroadcastJobTemplate != nil {
		readAll(ctx, r, &v1alpha1.BroadcastJobList{}, explanation.BroadcastJobs, object.Namespace, func(job *v1alpha1.BroadcastJob) {
			add(cronjob.OfBroadcastJob(job))
		})
	} else {
		readAll(ctx, r, &batchv1.JobList{}, explanation.Jobs, object.Namespace, func(job *batchv1.Job) { add(cronjob.OfJob(job)) })
	}
	return found
}
