// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/config/crd"
	markerschema "github.com/seamark-dev/seamark/internal/local/schema"
)

// Read reads and checks all documents of the sources. The error joins one Problem for
// each thing that is wrong, over all files.
func Read(ctx context.Context, sources []Source, options Options) (Objects, error) {
	r, err := newReader(ctx, options)
	if err != nil {
		return Objects{}, err
	}
	for _, source := range sources {
		if err := r.source(source); err != nil {
			return Objects{}, err
		}
	}
	r.finish()
	if len(r.problems) > 0 {
		return Objects{}, errors.Join(r.problems...)
	}
	return r.objects, nil
}

// reader gathers what the documents hold.
type reader struct {
	ctx      context.Context
	options  Options
	decoder  runtime.Decoder
	markers  *markerschema.Schema
	objects  Objects
	problems []error

	// seen has each object's place, by kind and name.
	seen map[string]place
	// checks are what can be told once all documents are read.
	checks []func()
}

// place is where an object stands.
type place struct {
	source   string
	document int
	object   string
}

func newReader(ctx context.Context, options Options) (*reader, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	markers, err := markerschema.New(crd.PodProbeMarkers(), v1alpha1.GroupVersion().Version)
	if err != nil {
		return nil, fmt.Errorf("load the rules of PodProbeMarkers: %w", err)
	}
	return &reader{
		ctx: ctx, options: options, markers: markers,
		decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		seen:    map[string]place{},
		objects: Objects{
			ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{},
			Secrets:    map[types.NamespacedName]*corev1.Secret{},
		},
	}, nil
}

// source reads one file. It returns an error where the file itself can't be read.
func (r *reader) source(source Source) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(source.Reader))
	for n := 1; ; {
		document, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", source.Name, err)
		}
		encoded, err := yaml.YAMLToJSONStrict(document)
		at := place{source: source.Name, document: n}
		if err != nil {
			r.refuse(at, fmt.Errorf("it is no YAML: %w", err))
		} else if string(encoded) != "null" {
			r.document(at, encoded)
		} else {
			continue
		}
		n++
	}
}

// document takes in one document: an object, or a List of them.
func (r *reader) document(at place, encoded []byte) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		r.refuse(at, fmt.Errorf("it is no Kubernetes object: %w", err))
		return
	}
	at.object = strings.TrimSpace(object.GetKind() + " " + object.GetName())
	if !object.IsList() {
		r.object(at, object, encoded)
		return
	}
	err := object.EachListItem(func(item runtime.Object) error {
		encoded, err := runtime.Encode(unstructured.UnstructuredJSONScheme, item)
		if err != nil {
			return fmt.Errorf("encode an item of the list: %w", err)
		}
		r.document(at, encoded)
		return nil
	})
	if err != nil {
		r.refuse(at, err)
	}
}

// object takes in one object.
func (r *reader) object(at place, object *unstructured.Unstructured, encoded []byte) {
	if err := checkVersion(object); err != nil {
		r.refuse(at, err)
		return
	}
	if !known(object) {
		r.unsupported(at, "")
		return
	}
	if object.GroupVersionKind() == v1alpha1.GroupVersion().WithKind("PodProbeMarker") {
		r.marker(at, object, encoded)
		return
	}
	decoded, _, err := r.decoder.Decode(encoded, nil, nil)
	if err != nil {
		r.refuseAll(at, strictErrors(err))
		return
	}
	switch o := decoded.(type) {
	case *corev1.Pod:
		r.pod(at, o)
	case *appsv1.Deployment:
		r.deployment(at, o)
	case *appsv1.StatefulSet:
		r.statefulSet(at, o)
	case *corev1.ConfigMap:
		if r.named(at, o) {
			r.objects.ConfigMaps[nameOf(o)] = o
		}
	case *corev1.Secret:
		if r.named(at, o) {
			r.objects.Secrets[nameOf(o)] = withStringData(o)
		}
	}
}

// kinds returns those that are read, each with its group and version.
func kinds() map[string]schema.GroupVersion {
	return map[string]schema.GroupVersion{
		"Pod":            corev1.SchemeGroupVersion,
		"ConfigMap":      corev1.SchemeGroupVersion,
		"Secret":         corev1.SchemeGroupVersion,
		"Deployment":     appsv1.SchemeGroupVersion,
		"StatefulSet":    appsv1.SchemeGroupVersion,
		"PodProbeMarker": v1alpha1.GroupVersion(),
	}
}

// known tells whether objects of the kind are read. Others, such as Services, belong to
// the application and mean nothing to a local run.
func known(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	version, ok := kinds()[gvk.Kind]
	return ok && gvk.GroupVersion() == version
}

// checkVersion refuses an object without a version, and one whose kind is read though not
// in its version: to leave it out would be to run something else than was meant. Groups
// of others, whose names have a dot, may have kinds of the same name.
func checkVersion(object *unstructured.Unstructured) error {
	path := field.NewPath("apiVersion")
	if object.GetAPIVersion() == "" {
		return field.Required(path, "an object has a group and version, such as v1 or apps/v1")
	}
	gvk := object.GroupVersionKind()
	version, ok := kinds()[gvk.Kind]
	if !ok || gvk.GroupVersion() == version || strings.Contains(gvk.Group, ".") && gvk.Group != version.Group {
		return nil
	}
	return field.NotSupported(path, object.GetAPIVersion(), []string{version.String()})
}

// unsupported keeps what is ignored: a field, or a whole object where the path is empty.
func (r *reader) unsupported(at place, path string) {
	r.objects.unsupported = append(r.objects.unsupported,
		Field{Source: at.source, Document: at.document, Object: at.object, Path: path})
}

// strictErrors returns the parts of a decoder's error.
func strictErrors(err error) []error {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return strict.Errors()
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return []error{fmt.Errorf("%s: got a %s, want a value of type %s", fieldOf(wrong.Field), wrong.Value, wrong.Type)}
	}
	return []error{err}
}

// fieldOf returns a field's path without the embedded Go types, which begin with capitals.
func fieldOf(path string) string {
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	steps = slices.DeleteFunc(steps, func(step string) bool { return step[0] >= 'A' && step[0] <= 'Z' })
	return strings.Join(steps, ".")
}

// withStringData merges stringData into data, as the API server stores it.
func withStringData(secret *corev1.Secret) *corev1.Secret {
	if secret.Data == nil {
		secret.Data = make(map[string][]byte, len(secret.StringData))
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}

func (r *reader) refuse(at place, err error) {
	r.problems = append(r.problems, &Problem{Source: at.source, Document: at.document, Object: at.object, Err: err})
}

func (r *reader) refuseAll(at place, errs []error) {
	for _, err := range errs {
		r.refuse(at, err)
	}
}

// finish makes the checks that need all documents.
func (r *reader) finish() {
	for _, check := range r.checks {
		check()
	}
}
