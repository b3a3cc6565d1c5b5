// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"cmp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Job is a Job or a BroadcastJob of an AdvancedCronJob.
type Job struct {
	metav1.Object
	// GroupVersionKind is its kind.
	schema.GroupVersionKind
	// Ended is how it has ended, Complete or Failed, or empty.
	Ended batchv1.JobConditionType
	// CompletionTime is when it has ended, or nil.
	CompletionTime *metav1.Time
}

// Kind returns the kind of what is created.
func Kind(kind v1alpha1.CronJobTemplateKind) schema.GroupVersionKind {
	if kind == v1alpha1.BroadcastJobTemplateKind {
		return v1alpha1.GroupVersion().WithKind(string(kind))
	}
	return batchv1.SchemeGroupVersion.WithKind("Job")
}

// OfJob returns what plans read of a Job.
func OfJob(job *batchv1.Job) Job {
	found := Job{Object: job, GroupVersionKind: Kind(v1alpha1.JobTemplateKind), CompletionTime: job.Status.CompletionTime}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			found.Ended = condition.Type
		}
	}
	return found
}

// OfBroadcastJob returns what plans read of a BroadcastJob.
func OfBroadcastJob(job *v1alpha1.BroadcastJob) Job {
	found := Job{Object: job, GroupVersionKind: Kind(v1alpha1.BroadcastJobTemplateKind), CompletionTime: job.Status.CompletionTime}
	switch job.Status.Phase {
	case v1alpha1.BroadcastJobCompleted:
		found.Ended = batchv1.JobComplete
	case v1alpha1.BroadcastJobHasFailed:
		found.Ended = batchv1.JobFailed
	case v1alpha1.BroadcastJobRunning, v1alpha1.BroadcastJobPaused:
	}
	return found
}

// reference returns what the status has about an active Job.
func (j *Job) reference() corev1.ObjectReference {
	version, kind := j.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: j.GetNamespace(), Name: j.GetName(), UID: j.GetUID()}
}

func older(a, b Job) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
}

// scheduledTime returns the scheduled time of a Job, and false if the Job does not name it.
func (j *Job) scheduledTime() (time.Time, bool) {
	scheduled, err := time.Parse(time.RFC3339, j.GetAnnotations()[v1alpha1.ScheduledAtKey])
	return scheduled, err == nil
}
