// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest decodes YAML and JSON documents into the objects of a local run and
// validates them as an API server does. A local run can start all pods that pass. The package
// also lists the fields and objects that a local run ignores.
package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// MaxReplicas is the maximum number of pods per workload. It is more than a
// machine can run, but small enough that a mistyped number does not exhaust its memory.
const MaxReplicas = 10_000

// Options control how manifests become pods.
type Options struct {
	// Replicas overrides the replicas of all workloads except for DaemonSets, Jobs and
	// CronJobs, unless it is nil. It is between 0 and MaxReplicas.
	Replicas *int32
	// Commands are shell commands to run in the containers with these names, instead of
	// their command and args.
	Commands map[string]string
}

// Objects are the decoded objects, with the defaults that an API server sets.
type Objects struct {
	// Pods are the pods to run, in the order of the documents. The pods of a workload have
	// its name and a number.
	Pods []*corev1.Pod
	// Markers are the PodProbeMarkers.
	Markers []v1alpha1.PodProbeMarker
	// ConfigMaps and Secrets contain the variables and files of pods.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Secrets    map[types.NamespacedName]*corev1.Secret

	unsupported []Unsupported
}

// Place is where an object is.
type Place struct {
	// Input is the name of the file, Document the number of the document in it, from 1.
	Input    string
	Document int
	// Object is the kind and the name, such as "Deployment game-server", as far as they are known.
	Object string
}

// String returns the file, the document and the object.
func (p Place) String() string {
	if p.Object == "" {
		return fmt.Sprintf("%s: document %d", p.Input, p.Document)
	}
	return fmt.Sprintf("%s: document %d: %s", p.Input, p.Document, p.Object)
}

// Unsupported is a field or an object that a local run ignores.
type Unsupported struct {
	Place
	// Path is the field, such as "spec.template.spec.containers[0].resources". It is empty if
	// the kind of the object is not supported.
	Path string
}

// Location returns the file, the document, the object and the field.
func (u Unsupported) Location() string {
	return fmt.Sprintf("%s: document %d: %s", u.Input, u.Document, u)
}

// String returns the object and the field.
func (u Unsupported) String() string {
	if u.Path == "" {
		return u.Object
	}
	return u.Object + ": " + u.Path
}

// Harmless reports whether the field only affects where and with which resources the pod runs, or
// how a workload replaces its pods, so that probes have the same results without it.
func (u Unsupported) Harmless() bool {
	field := u.Path[strings.LastIndexByte(u.Path, '.')+1:]
	return slices.Contains([]string{
		"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets",
		"updateStrategy", "scaleStrategy", "podManagementPolicy", "minReadySeconds", "revisionHistoryLimit",
	}, field)
}

// Unsupported returns the fields and objects that a local run ignores, in the order of the
// documents. It does not include images, which a local run never pulls.
func (o Objects) Unsupported() []Unsupported { return o.unsupported }

// DocumentError is one error in a document.
type DocumentError struct {
	Place
	// Err names the field, its value, and what is allowed.
	Err error
}

// Error returns the location and the error in one line.
func (e *DocumentError) Error() string { return fmt.Sprintf("%s: %s", e.Place, e.Err) }

// Unwrap returns the error without its location.
func (e *DocumentError) Unwrap() error { return e.Err }
