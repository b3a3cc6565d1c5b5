// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads what is to be run from YAML and JSON documents, and checks it as
// an API server would before a pod of it is started. What it lets through, a local run can
// start; what a local run can't honour, it names.
package manifest

import (
	"fmt"
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

// MaxReplicas is the most pods that one Deployment or StatefulSet may have: far more than a
// machine runs well, and few enough that a mistyped number does not use up its memory.
const MaxReplicas = 10_000

// Options say how manifests become pods.
type Options struct {
	// Replicas overrides the replicas of every Deployment and StatefulSet. Nil keeps
	// them; otherwise it is from 0 to MaxReplicas.
	Replicas *int32
}

// Objects are what the files hold, with the defaults that an API server fills in.
type Objects struct {
	// Pods are the pods to run, in the order of the files: those of Pods, and one for
	// each replica of a Deployment or StatefulSet, named after it and numbered from 0.
	Pods []*corev1.Pod
	// Markers are the PodProbeMarkers.
	Markers []v1alpha1.PodProbeMarker
	// ConfigMaps and Secrets are what pods take environment and files from.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	Secrets    map[types.NamespacedName]*corev1.Secret

	unsupported []Field
}

// Field is something in the files that a local run can't honour.
type Field struct {
	// Source is the file's name, Document the place of the document in it, from 1.
	Source   string
	Document int
	// Object is the kind and the name, such as "Deployment game-server".
	Object string
	// Path is the field, such as "spec.template.spec.containers[0].resources"; empty
	// for an object of a kind that is left out altogether.
	Path string
}

// Where returns all of it in one line, as a Problem says where it is.
func (f Field) Where() string {
	return fmt.Sprintf("%s: document %d: %s", f.Source, f.Document, f)
}

// String returns the object and the field, for people.
func (f Field) String() string {
	if f.Path == "" {
		return f.Object
	}
	return f.Object + ": " + f.Path
}

// Unsupported returns what the objects ask for and a local run ignores, in the order of
// the files. Images are not among it: that they are not pulled is what a local run is for.
func (o Objects) Unsupported() []Field { return o.unsupported }

// Problem is one thing that is wrong with a document.
type Problem struct {
	// Source is the file's name.
	Source string
	// Document is the place of the document in the file, from 1.
	Document int
	// Object is the kind and the name, as far as they can be told.
	Object string
	// Err names the field, the value where there is one, and what is allowed.
	Err error
}

// Error returns all of it in one line.
func (p *Problem) Error() string {
	if p.Object == "" {
		return fmt.Sprintf("%s: document %d: %s", p.Source, p.Document, p.Err)
	}
	return fmt.Sprintf("%s: document %d: %s: %s", p.Source, p.Document, p.Object, p.Err)
}

// Unwrap returns the error without its place.
func (p *Problem) Unwrap() error { return p.Err }
