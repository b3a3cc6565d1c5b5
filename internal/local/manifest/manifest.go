// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads what is to be run from YAML and JSON documents, and checks it as
// an API server would before a pod of it is started.
package manifest

import (
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Source is one file.
type Source struct {
	// Name is what errors call it: its path, or "standard input".
	Name string
	// Reader gives its contents.
	Reader io.Reader
}

// Options say how manifests become pods.
type Options struct {
	// Replicas overrides the replicas of every Deployment and StatefulSet. Nil keeps them.
	Replicas *int32
}

// Objects are what the files hold, defaulted as an API server would.
type Objects struct {
	// Pods are the pods to run, in the order of the files: those of Pods, and one for
	// each replica of a Deployment or StatefulSet.
	Pods []*corev1.Pod
	// Markers are the PodProbeMarkers.
	Markers []v1alpha1.PodProbeMarker
	// ConfigMaps and Secrets are what pods take environment and files from.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Secrets    map[types.NamespacedName]*corev1.Secret

	unsupported []Field
}

// Field is something in the files that can't be honoured by a local run.
type Field struct {
	// Object is the kind and the name, such as "Deployment game-server".
	Object string
	// Path is the field, such as "spec.containers[0].resources"; empty for an object of
	// a kind that is left out altogether.
	Path string
	// Reason says what becomes of it, in words. Empty where that is plain: it is ignored.
	Reason string
}

// Read reads and checks all documents of the sources. The error names, for each thing that
// is wrong, the file, the document in it, the field, the value and what is allowed.
func Read(sources []Source, options Options) (Objects, error) {
	return Objects{}, errors.New("reading manifests: not one document")
}

// Unsupported returns what the objects ask for and a local run can't do, in the order of
// the files, each field once an object.
func (o Objects) Unsupported() []Field { return o.unsupported }
