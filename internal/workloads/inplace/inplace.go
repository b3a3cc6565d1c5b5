// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inplace updates pods without recreating them: images of containers, labels and annotations
// by a patch of the pod, CPU and memory by its subresource resize.
//
// An update goes through these steps; each is a function of the pod, so that it continues after a
// crash at any write: Start marks the pod not ready and records the update in an annotation, Next
// changes the containers after the grace period, in batches by their launch priorities, waits until
// the containers of the new images have been started, and marks the pod ready. The annotations are those of OpenKruise, so an update that
// OpenKruise started is continued, and the other way round.
package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Change is what an update in place changes in a pod.
type Change struct {
	// Images are the new images of containers, by name. They include images that the pod already has.
	Images map[string]string
	// Resources are the new requests and limits of containers, by name.
	Resources map[string]corev1.ResourceRequirements
	// Labels and Annotations are set, or removed if the value is nil.
	Labels, Annotations map[string]*string
}

// Step is the next step of a started update.
type Step struct {
	// Patch is the next write, nil if there is none.
	Patch *workload.PodPatch
	// After is the time after which the next step must be computed although nothing changes, zero for
	// never.
	After time.Duration
	// Refused is why the update cannot be finished in place, for example because the node does not
	// have the resources. It is empty otherwise. The pod must be recreated.
	Refused string
}

// Target is the revision that Start updates a pod to.
type Target struct {
	// Revision is the name of the revision.
	Revision string
	// Labels are the labels of the pod that contain the revision. They are written together with the
	// change, or at the start of the grace period.
	Labels map[string]string
	// Grace is the time between the pod becoming not ready and the change of its containers.
	Grace time.Duration
}

// InProgress reports whether the pod is being updated in place: the update has started, also if only
// the first of its writes was executed, and is not done.
func InProgress(pod *corev1.Pod) bool {
	if c := workload.Condition(pod, pub.InPlaceUpdateReady); c != nil && c.Status == corev1.ConditionFalse {
		return true
	}
	return !Done(pod)
}
