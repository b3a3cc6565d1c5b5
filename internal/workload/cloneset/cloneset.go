// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloneset decides the next step of a CloneSet. It is a pure function of what the cache
// contains and of the time.
package cloneset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workload"
)

// Input is what a step depends on. Plan does not change it.
type Input struct {
	// Set is the set with the defaults of its CRD.
	Set *v1alpha1.CloneSet
	// Pods are the pods that the set controls, including terminating and finished ones and those that
	// the selector does not match, and the pods of the namespace that the selector matches and that
	// have no controller.
	Pods []*corev1.Pod
	// Claims are the claims that the set or a pod in Pods owns, including terminating ones.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are the revisions that the selector matches or that the set controls.
	Revisions []*appsv1.ControllerRevision
	// Nodes are the labels of the pods' nodes by the name of the node. They are read only if the
	// template has topologySpreadConstraints.
	Nodes map[string]map[string]string
	// Markers is what is known about the markers that select the pods.
	Markers workload.Markers
	// TakenNames are names of pods that the set must not use: a create failed because a pod that
	// does not belong to the set has the name. It may be nil.
	TakenNames map[string]bool
	// Now is the current time.
	Now time.Time
}

// Output is the step.
type Output struct {
	workload.Actions
	// Status is the whole status after the step, if no write fails. It equals the set's status if
	// nothing changed.
	Status v1alpha1.CloneSetStatus
}

// Plan returns the next step of the set. An error means that the set is invalid in a way that its CRD
// does not reject, or that a revision cannot be decoded.
func Plan(in Input) (Output, error) {
	return Output{Status: *in.Set.Status.DeepCopy()}, nil
}

// Failed returns the status with the conditions FailedScale and FailedUpdate of the writes of the
// step that failed. The status is that of Plan, and the set the one that Plan was called with.
func Failed(
	set *v1alpha1.CloneSet, status v1alpha1.CloneSetStatus, failures []workload.Failure, now time.Time,
) v1alpha1.CloneSetStatus {
	return status
}
