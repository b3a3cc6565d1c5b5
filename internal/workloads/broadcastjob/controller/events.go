// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// nodesPause is the time between a change of nodes and the plans of the jobs: many may change at the same time.
const nodesPause = 200 * time.Millisecond

// jobChanged enqueues a job whose specification has changed.
func (c *Controller) jobChanged(_ context.Context, q controllers.Queue, before, after *v1alpha1.BroadcastJob, _ bool) {
	if after == nil {
		after = before
	} else if before != nil && before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return
	}
	controllers.Enqueue(q, client.ObjectKeyFromObject(after))
}

// podChanged enqueues the job of a pod that is gone or of which something has changed that plans read. A new one was
// created for a job that looks for it.
func (c *Controller) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, _ bool) {
	if before == nil || after != nil && before.Status.Phase == after.Status.Phase && before.Spec.NodeName == after.Spec.NodeName &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && trim.Restarts(before) == trim.Restarts(after) {
		return
	}
	owner := metav1.GetControllerOfNoCopy(before)
	if owner != nil && owner.Kind == broadcastjob.Kind().Kind && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		controllers.Enqueue(q, types.NamespacedName{Namespace: before.Namespace, Name: owner.Name})
	}
}

// nodeChanged enqueues the jobs that have not ended when a node joins, goes, or has other labels or taints.
func (c *Controller) nodeChanged(_ context.Context, q controllers.Queue, before, after *corev1.Node, initial bool) {
	if initial || before != nil && after != nil && before.UID == after.UID && maps.Equal(before.Labels, after.Labels) &&
		slices.Equal(before.Spec.Taints, after.Spec.Taints) && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return
	}
	for _, job := range reconciler.All[*v1alpha1.BroadcastJob](c.Jobs) {
		if !broadcastjob.Ended(job) {
			controllers.EnqueueAt(q, client.ObjectKeyFromObject(job), nodesPause, 0)
		}
	}
}

// enqueueAll enqueues all jobs.
func (c *Controller) enqueueAll(q controllers.Queue) {
	for _, job := range reconciler.All[*v1alpha1.BroadcastJob](c.Jobs) {
		controllers.Enqueue(q, client.ObjectKeyFromObject(job))
	}
}
