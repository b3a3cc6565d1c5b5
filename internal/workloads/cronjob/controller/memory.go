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

// remembered is what the process remembers about an object.
type remembered struct {
	// object, job and broadcast are the resource versions of objects, Jobs and BroadcastJobs that were written last, empty
	// if none were.
	object, job, broadcast string
	// started is the last slot that was started, and created is whether the status does not have it yet.
	started *metav1.Time
	created bool
}

// creates remembers what was created for a slot.
func (r *remembered) creates(job *cronjob.Job, slot time.Time) {
	r.started, r.created = &metav1.Time{Time: slot}, true
	if job.Kind == string(v1alpha1.BroadcastJobTemplateKind) {
		r.broadcast = job.GetResourceVersion()
	} else {
		r.job = job.GetResourceVersion()
	}
}

// cached reports whether the caches have what was written.
func (r *remembered) cached(c *Controller) bool {
	return !reconciler.Behind(c.Stores.Sets, r.object) && !reconciler.Behind(c.Jobs, r.job) &&
		(c.BroadcastJobs == nil || !reconciler.Behind(c.BroadcastJobs, r.broadcast))
}
