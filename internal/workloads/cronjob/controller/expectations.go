// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// expectations are the writes for an object that the caches may not show yet.
type expectations struct {
	// object, job and broadcast are the resource versions of objects, Jobs and BroadcastJobs that were written last, empty
	// if none were.
	object, job, broadcast string
	// started is the last scheduled time that was started, and created is whether the status does not have it yet.
	started *metav1.Time
	created bool
}

// creates records what was created for a scheduled time.
func (e *expectations) creates(job *cronjob.Job, scheduled time.Time) {
	e.started, e.created = &metav1.Time{Time: scheduled}, true
	if job.Kind == string(v1alpha1.BroadcastJobTemplateKind) {
		e.broadcast = job.GetResourceVersion()
	} else {
		e.job = job.GetResourceVersion()
	}
}

// cached reports whether the caches have what was written.
func (e *expectations) cached(c *Controller) bool {
	return !reconciler.Behind(c.Stores.Sets, e.object) && !reconciler.Behind(c.Jobs, e.job) &&
		(c.BroadcastJobs == nil || !reconciler.Behind(c.BroadcastJobs, e.broadcast))
}
