// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload contains what the controllers of workloads share: they gather what a planner
// needs from the cache, execute its step, and write the status. A step is planned only when the
// cache has what the earlier steps of the set wrote, so that nothing is written twice.
package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// SubjectSet is the key of the set in log lines.
const SubjectSet controller.Subject = "set"

// Metrics counts what a controller does. The kind is that of the sets.
type Metrics interface {
	// Failed counts a write that the API server refused or did not answer.
	Failed(kind string)
	// Waited counts a reconcile that found the cache older than the set's own writes.
	Waited(kind string)
	// StatusWritten counts a write of the status of a set.
	StatusWritten(kind string)
}

// Options are the dependencies of a Base. All except ClaimSizes are required.
type Options struct {
	// Kind is the kind of the sets.
	Kind schema.GroupVersionKind
	// Parts returns the parts of a set that pods and claims depend on.
	Parts func(set client.Object) Parts
	// ClaimSizes makes the sizes of claims matter: a change plans the next step of their set.
	ClaimSizes bool
	// Stores are the informers of the cache.
	Stores Stores
	// Client writes the status of sets.
	Client client.Client
	// Executor executes steps.
	Executor *apply.Workload
	// Gate is closed while another program serves the kind.
	Gate *Gate
	// Recorder records events on sets.
	Recorder record.EventRecorder
	// Metrics counts.
	Metrics Metrics
	// Now is the clock.
	Now func() time.Time
}

// Parts are parts of a set.
type Parts struct {
	// Selector selects the pods.
	Selector *metav1.LabelSelector
	// Template is the template of the pods.
	Template *corev1.PodTemplateSpec
	// Claims are the templates of the claims.
	Claims []corev1.PersistentVolumeClaim
}

// Base is embedded by the Reconciler of each kind.
type Base struct {
	Options
	memory *memory
}

// NewBase returns a Base.
func NewBase(options Options) Base {
	return Base{Options: options, memory: newMemory()}
}
