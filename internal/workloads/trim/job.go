// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Job returns a Job with only what is read of it: of a Job of an AdvancedCronJob, its scheduled time and how it has ended, and
// of any other one what identifies it.
func Job(job *batchv1.Job) *batchv1.Job {
	kept := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion,
	}}
	owner := metav1.GetControllerOfNoCopy(job)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return kept
	}
	kept.OwnerReferences = job.OwnerReferences
	kept.CreationTimestamp, kept.DeletionTimestamp = job.CreationTimestamp, job.DeletionTimestamp
	if at := job.Annotations[v1alpha1.ScheduledAtKey]; at != "" {
		kept.Annotations = map[string]string{v1alpha1.ScheduledAtKey: at}
	}
	for _, condition := range job.Status.Conditions {
		kept.Status.Conditions = append(kept.Status.Conditions, batchv1.JobCondition{Type: condition.Type, Status: condition.Status})
	}
	kept.Status.CompletionTime = job.Status.CompletionTime
	return kept
}
