// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodejob

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// NodesPause is the time between a change of nodes and the plans of the jobs: many may change at the same time.
const NodesPause = 200 * time.Millisecond

// podChanged enqueues the job of a pod that is gone or of which something has changed that plans read. A new one was
// created for a job that looks for it.
func (c *Controller[J, S, M]) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, _ bool) {
	if before == nil {
		return
	}
	// Most pods have other controllers, and the comparison of a status takes longer than all the rest.
	key, found := owner.Controller(before, c.descriptor.GroupVersionKind)
	if !found || after != nil && before.Spec.NodeName == after.Spec.NodeName &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels) &&
		equality.Semantic.DeepEqual(before.Status, after.Status) {
		return
	}
	controllers.Enqueue(q, key)
}

// nodeChanged enqueues the jobs that have not ended when a node joins, goes, has other labels or taints, or can or cannot
// run pods.
func (c *Controller[J, S, M]) nodeChanged(_ context.Context, q controllers.Queue, before, after *corev1.Node, initial bool) {
	if initial || before != nil && after != nil && before.UID == after.UID && maps.Equal(before.Labels, after.Labels) &&
		slices.Equal(before.Spec.Taints, after.Spec.Taints) && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) {
		return
	}
	for _, job := range reconciler.All[J](c.Stores.Sets) {
		if !c.descriptor.Ended(job) {
			controllers.EnqueueAt(q, client.ObjectKeyFromObject(job), NodesPause, 0)
		}
	}
}
