// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// selectionPause is the time between a change of nodes or of selected pods and the plans of the jobs: many may change at
// the same time.
const selectionPause = 200 * time.Millisecond

// jobChanged enqueues a job whose specification or service account has changed.
func (c *Controller) jobChanged(_ context.Context, q controllers.Queue, before, after *v1alpha1.ImagePullJob, _ bool) {
	if after == nil {
		after = before
	} else if before != nil && before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return
	}
	controllers.Enqueue(q, client.ObjectKeyFromObject(after))
}

// podChanged enqueues the job of a pod whose status has changed or that is gone, and the jobs that select nodes by the pods
// of the namespace.
func (c *Controller) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, initial bool) {
	if initial {
		return // Each job has an event of its own.
	}
	pod := before
	if pod == nil {
		pod = after
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == imagepull.Kind().Kind && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		// A new pod was created for a job that looks for it.
		if before != nil && (after == nil || !equality.Semantic.DeepEqual(before.Status, after.Status)) {
			controllers.Enqueue(q, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name})
		}
		return
	}
	if before != nil && after != nil && before.Spec.NodeName == after.Spec.NodeName && before.Status.Phase == after.Status.Phase &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels) {
		return
	}
	jobs, _ := c.Jobs.GetIndexer().ByIndex(toolscache.NamespaceIndex, pod.Namespace)
	for _, job := range typed[*v1alpha1.ImagePullJob](jobs) {
		if job.Spec.PodSelector != nil && job.Status.CompletionTime == nil {
			controllers.EnqueueAt(q, client.ObjectKeyFromObject(job), selectionPause, 0)
		}
	}
}

// nodeChanged enqueues the jobs that have not ended when a node joins, goes, can or cannot pull, or has other labels.
func (c *Controller) nodeChanged(_ context.Context, q controllers.Queue, before, after *corev1.Node, initial bool) {
	if initial || before != nil && after != nil && before.UID == after.UID && imagepull.Usable(before) == imagepull.Usable(after) &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels) {
		return
	}
	for _, job := range reconciler.All[*v1alpha1.ImagePullJob](c.Jobs) {
		if job.Status.CompletionTime == nil {
			controllers.EnqueueAt(q, client.ObjectKeyFromObject(job), selectionPause, 0)
		}
	}
}

// enqueueAll enqueues all jobs.
func (c *Controller) enqueueAll(q controllers.Queue) {
	for _, job := range reconciler.All[*v1alpha1.ImagePullJob](c.Jobs) {
		controllers.Enqueue(q, client.ObjectKeyFromObject(job))
	}
}

// Count returns what the metrics count of a job: whether the API server has refused its last pod.
func Count(job *v1alpha1.ImagePullJob) planning.Count {
	return planning.Count{Failing: meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ImagePullJobPullsCreated)}
}
