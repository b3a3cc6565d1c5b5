// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// remembered is what the process remembers about an object.
type remembered struct {
	// object and job are the resource versions that were written last, empty if none were.
	object, job string
	// started is the last slot that was started, and created is whether the status does not have it yet.
	started *metav1.Time
	created bool
}

// wrote remembers the resource versions of what was written, empty if nothing was.
func (r *remembered) wrote(object, job string) {
	if object != "" {
		r.object = object
	}
	if job != "" {
		r.job = job
	}
}

// cached reports whether the caches have what was written.
func (r *remembered) cached(objects, jobs reconciler.Store) bool {
	return !reconciler.Behind(objects, r.object) && !reconciler.Behind(jobs, r.job)
}
