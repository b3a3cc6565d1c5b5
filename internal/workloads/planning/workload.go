// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planning defines what the planners of workloads decide: the writes of one step for one
// set. A planner is a pure function of what the cache contains and of the time. It returns an empty
// Actions if nothing is to be done, and the same Actions for the same input, so that a step that was
// interrupted at any write is continued by the next one.
package planning

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Actions are the writes of one step, in the order in which they are executed: revisions, claims,
// patches, deletes, creates. The status is written after them. After a conflict, or an error that may
// pass, the kinds after it wait for the next step. A write that the API server refuses delays only those
// that depend on it: the pods of a claim, and what begins an update to a revision.
type Actions struct {
	// CreateRevision is the new update revision, nil if it exists. Pods of this step may refer to it.
	CreateRevision *appsv1.ControllerRevision
	// UpdateRevisions are revisions whose number or owner changes.
	UpdateRevisions []*appsv1.ControllerRevision
	// DeleteRevisions are revisions beyond the history limit.
	DeleteRevisions []*appsv1.ControllerRevision

	// CreateClaims and UpdateClaims are the changes of PersistentVolumeClaims. The name of a created
	// claim is deterministic. An updated claim is the whole desired object, with the resource version
	// that the decision is based on. A step never deletes a claim: Kubernetes deletes it with its owner.
	CreateClaims, UpdateClaims []*corev1.PersistentVolumeClaim
	// ExpandClaims are claims with a larger request of storage. A claim that the API server does not
	// expand, for example because its storage class does not permit it, does not prevent other writes.
	ExpandClaims []*corev1.PersistentVolumeClaim

	// CreatePulls and DeletePulls are ImagePullJobs. Their writes come last, and those that fail do not prevent others.
	CreatePulls, DeletePulls []*v1alpha1.ImagePullJob

	// Patches change pods, at most one per pod.
	Patches []PodPatch
	// Deletes are pods to delete.
	Deletes []PodDelete
	// Creates are pods to create, in order. Their names are deterministic, so that a create whose
	// response is lost is found by its name.
	Creates []*corev1.Pod

	// Events are recorded on the set after the writes have succeeded.
	Events []Event
	// StatusEvents are recorded on the set after the status of the step has been written.
	StatusEvents []Event
	// RequeueAfter is the time until the planner must run again although nothing changes. Zero means
	// never.
	RequeueAfter time.Duration
}

// LongestWait is the time after which what waits for a time is planned again. Waits follow from the wall
// clock, whose corrections timers do not follow.
const LongestWait = time.Minute

// Number returns a number for a status: n, at least 0.
func Number(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) } //nolint:gosec // Bounded.

// Until returns the time from now until next, at least a nanosecond and at most LongestWait.
func Until(next, now time.Time) time.Duration {
	return min(max(next.Sub(now), time.Nanosecond), LongestWait)
}

// MostCreates is the number of pods that a step creates at most. The events of these pods cause the next
// step. A set with a replicas that no cluster can run does not use up the memory of the program.
const MostCreates = 5000

// PodPatch changes one pod. Its writes are executed in the order of the fields: conditions, then
// metadata and images in one write, then resources. Each write requires that the pod still is the one
// that the decision is based on.
type PodPatch struct {
	// Pod is the pod as in the cache. Its UID and its resource version are preconditions.
	Pod *corev1.Pod
	// Reason is why the pod changes, for logs and metrics: a CamelCase word.
	Reason string

	// Conditions are set in the status. The planner sets all fields, including the times.
	Conditions []corev1.PodCondition
	// Labels and Annotations are set, or removed if the value is nil.
	Labels, Annotations map[string]*string
	// Images are the new images of containers and init containers, by the name of the container.
	Images map[string]string
	// Controller is what becomes of the reference to the controlling owner.
	Controller ControllerChange
	// Resources are the new requests and limits of containers, by name, for the resize subresource.
	Resources map[string]corev1.ResourceRequirements
	// Stop lets the kubelet end the pod, which fails: spec.activeDeadlineSeconds becomes 1.
	Stop bool
}

// ControllerChange is a change of a pod's reference to its controlling owner.
type ControllerChange int

const (
	// KeepController does not change the reference.
	KeepController ControllerChange = iota
	// Adopt adds the reference to the set.
	Adopt
	// Release removes the reference to the set.
	Release
)

// PodDelete deletes one pod, with its UID and its resource version as preconditions: a pod that has
// changed since the decision, for example because a match started in it, is not deleted. A pod without a
// resource version is deleted whatever has changed.
type PodDelete struct {
	Pod *corev1.Pod
	// Reason is why the pod is deleted, for logs, events and metrics: a CamelCase word.
	Reason string
}

// Empty reports whether the step writes nothing.
func (a *Actions) Empty() bool {
	return a.CreateRevision == nil && len(a.UpdateRevisions)+len(a.DeleteRevisions)+
		len(a.CreateClaims)+len(a.UpdateClaims)+len(a.ExpandClaims)+
		len(a.CreatePulls)+len(a.DeletePulls)+len(a.Patches)+len(a.Deletes)+len(a.Creates) == 0
}
