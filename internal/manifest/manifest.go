// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest decodes YAML and JSON documents into the objects of a local run and
// validates them as an API server does. A local run can start all pods that pass. The package
// also lists the fields and objects that a local run ignores.
package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/document"
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
	warnings    []string
	// markers are the places of the markers, and parts those of the volumes and containers of each pod, by name.
	markers map[types.NamespacedName]Place
	parts   map[types.NamespacedName]map[podPart]pathIn
}

// pathIn is a path in an object.
type pathIn struct {
	object Place
	path   string
}

// Warnings returns what a local run does not do as a cluster, or what has no effect, each with its place.
func (o Objects) Warnings() []string { return o.warnings }

// MarkerPlace returns the file, line and column of a field of a marker, or nothing if the marker is not known.
func (o Objects) MarkerPlace(marker types.NamespacedName, path string) string {
	place, known := o.markers[marker]
	if !known {
		return ""
	}
	return place.field(path).position()
}

// VolumePlace returns the file, line and column of a volume of a pod, or nothing if it is not known.
func (o Objects) VolumePlace(pod *corev1.Pod, volume string) string {
	if in, known := o.parts[nameOf(pod)][podPart{volumePart, volume}]; known {
		return in.object.field(in.path).position()
	}
	return ""
}

// ContainerPlace returns the file, line and column of a field of a container of a pod, and the object that has the container, or
// nothing if it is not known.
func (o Objects) ContainerPlace(pod *corev1.Pod, container, path string) string {
	if in, known := o.parts[nameOf(pod)][podPart{containerPart, container}]; known {
		return in.object.field(in.path + "." + path).String()
	}
	return ""
}

// Place is where an object or a field of it is.
type Place struct {
	// Input is the name of the file, Document the number of the document in it, from 1.
	Input    string
	Document int
	// Line and Column are those of the object or the field, from 1. They are 0 if the content is not that of a file that the
	// user wrote.
	Line, Column int
	// Object is the kind and the name, such as "Deployment game-server", as far as they are known.
	Object string

	// positions finds fields of the document, and prefix is the path of the object in it, such as "items[1].". positions is nil
	// if lines are not known.
	positions *document.Positions
	prefix    string
}

// field returns the place of a field of the object.
func (p Place) field(path string) Place {
	if p.positions != nil {
		p.Line, p.Column = p.positions.Of(p.prefix + path)
	}
	return p
}

// position returns the file with the line and the column, or with the number of the document if these are not known.
func (p Place) position() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: document %d", p.Input, p.Document)
	}
	return fmt.Sprintf("%s:%d:%d", p.Input, p.Line, p.Column)
}

// String returns the file, the line, the column and the object.
func (p Place) String() string {
	if p.Object == "" {
		return p.position()
	}
	return p.position() + ": " + p.Object
}

// Unsupported is a field or an object that a local run ignores.
type Unsupported struct {
	Place
	// Path is the field, such as "spec.template.spec.containers[0].resources". It is empty if
	// the kind of the object is not supported.
	Path string
	// Reason is why it is ignored, or empty.
	Reason string
}

// String returns the place, the object, the field and the reason.
func (u Unsupported) String() string {
	text := u.Place.String()
	if u.Path != "" {
		text += ": " + u.Path
	}
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	return text
}

// Harmless reports whether the field only affects where and with which resources the pod runs, or
// how a workload replaces its pods, so that probes have the same results without it.
func (u Unsupported) Harmless() bool {
	field := u.Path[strings.LastIndexByte(u.Path, '.')+1:]
	return slices.Contains([]string{
		"resources", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets",
		"updateStrategy", "upgradeStrategy", "scaleStrategy", "podManagementPolicy", "minReadySeconds", "revisionHistoryLimit",
	}, field)
}

// Unsupported returns the fields and objects that a local run ignores, in the order of the
// documents. It does not include images, which a local run never pulls.
func (o Objects) Unsupported() []Unsupported { return o.unsupported }

// DocumentError is one error in a document.
type DocumentError struct {
	// Place is that of the field, if the error names one.
	Place
	// Err names the field, its value, and what is allowed.
	Err error
}

// Error returns the location and the error in one line.
func (e *DocumentError) Error() string { return fmt.Sprintf("%s: %s", e.Place, e.Err) }

// Unwrap returns the error without its location.
func (e *DocumentError) Unwrap() error { return e.Err }

// fieldError is an error about a field that has no value to show.
type fieldError struct{ field, message string }

// Error returns the field and the message.
func (e *fieldError) Error() string { return e.field + ": " + e.message }

// fieldOf returns the path of the field that an error names, or nothing.
func fieldOf(err error) string {
	var own *fieldError
	var of *field.Error
	switch {
	case errors.As(err, &own):
		return own.field
	case errors.As(err, &of):
		return of.Field
	}
	return ""
}
