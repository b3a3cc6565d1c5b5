// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	crdschema "github.com/seamark-dev/seamark/internal/manifest/schema"
)

// Read decodes and validates all documents of the inputs. If documents are invalid, the error
// joins one DocumentError per error in any of them.
func Read(ctx context.Context, inputs []Input, options Options) (Objects, error) {
	r, err := newReader(ctx, options)
	if err != nil {
		return Objects{}, err
	}
	for _, input := range inputs {
		if err := r.input(input); err != nil {
			r.errs = append(r.errs, err)
		}
	}
	r.finish()
	if len(r.errs) > 0 {
		return Objects{}, errors.Join(r.errs...)
	}
	return r.objects, nil
}

// reader collects the objects and errors of the documents.
type reader struct {
	ctx     context.Context
	options Options
	scheme  *runtime.Scheme
	decoder runtime.Decoder
	objects Objects
	// schemas are the compiled schemas of custom resources, by kind.
	schemas map[schema.GroupVersionKind]*crdschema.Schema
	errs    []error

	// seen contains the location of each object, by kind and name.
	seen map[string]location
	// commanded has the containers that got a command of the options.
	commanded map[string]bool
	// checks are the checks that need all documents.
	checks []func()
}

// location is the location of an object.
type location struct {
	input    string
	document int
	object   string
}

func newReader(ctx context.Context, options Options) (*reader, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return &reader{
		ctx: ctx, options: options, scheme: scheme, schemas: map[schema.GroupVersionKind]*crdschema.Schema{},
		decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		seen:    map[string]location{}, commanded: map[string]bool{},
		objects: Objects{
			ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{},
			Secrets:    map[types.NamespacedName]*corev1.Secret{},
		},
	}, nil
}

// input reads the documents of one input. It returns an error if the input cannot be read.
func (r *reader) input(input Input) error {
	content, err := io.ReadAll(input.Reader)
	if err != nil {
		return fmt.Errorf("read %s: %w", input.Name, err)
	}
	documents, err := document.Split(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", input.Name, err)
	}
	for _, d := range documents {
		at := location{input: input.Name, document: d.Number}
		if d.Err != nil {
			r.addError(at, d.Err)
			continue
		}
		r.document(at, d.JSON)
	}
	return nil
}

// document handles one document: an object or a List of objects.
func (r *reader) document(at location, encoded []byte) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		r.addError(at, fmt.Errorf("not a Kubernetes object: %w", err))
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
			return fmt.Errorf("encode list item: %w", err)
		}
		r.document(at, encoded)
		return nil
	})
	if err != nil {
		r.addError(at, err)
	}
}

// object handles one object.
func (r *reader) object(at location, object *unstructured.Unstructured, encoded []byte) {
	if err := checkVersion(object); err != nil {
		r.addError(at, err)
		return
	}
	if !supported(object) {
		r.unsupported(at, "")
		return
	}
	if object.GroupVersionKind() == v1alpha1.GroupVersion().WithKind("PodProbeMarker") {
		r.marker(at, object, encoded)
		return
	}
	if object.GroupVersionKind().Group == kruiseGroup {
		r.kruise(at, object, encoded)
		return
	}
	decoded, _, err := r.decoder.Decode(encoded, nil, nil)
	if err != nil {
		r.addStrictErrors(at, object, err)
		return
	}
	switch o := decoded.(type) {
	case *corev1.Pod:
		r.pod(at, o)
	case *appsv1.Deployment:
		r.deployment(at, o)
	case *appsv1.StatefulSet:
		r.statefulSet(at, o)
	case *appsv1.ReplicaSet:
		r.replicaSet(at, o)
	case *appsv1.DaemonSet:
		r.daemonSet(at, o)
	case *batchv1.Job:
		r.job(at, o)
	case *batchv1.CronJob:
		r.cronJob(at, o)
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

// kinds returns the supported kinds, each with its groups and versions. The first is the
// one that errors suggest.
func kinds() map[string][]schema.GroupVersion {
	core, apps, batch := []schema.GroupVersion{corev1.SchemeGroupVersion}, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	kruise, kruiseBeta := v1alpha1.GroupVersion(), schema.GroupVersion{Group: kruiseGroup, Version: "v1beta1"}
	return map[string][]schema.GroupVersion{
		"Pod":                   core,
		"ConfigMap":             core,
		"Secret":                core,
		"PersistentVolumeClaim": core,
		"Deployment":            {apps},
		"ReplicaSet":            {apps},
		"StatefulSet":           {apps, kruise, kruiseBeta},
		"DaemonSet":             {apps, kruise, kruiseBeta},
		"CloneSet":              {kruise, kruiseBeta},
		"Job":                   {batch},
		"CronJob":               {batch},
		"PodProbeMarker":        {kruise},
	}
}

// supported reports whether a local run supports the kind. It ignores other kinds, such as
// Services.
func supported(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return slices.Contains(kinds()[gvk.Kind], gvk.GroupVersion())
}

// checkVersion rejects an object without a version, and a supported kind in a version that
// is not supported: to ignore it would silently leave out pods. A kind of the same name in
// another API group, recognized by the dot in the group, is not an error.
func checkVersion(object *unstructured.Unstructured) error {
	path := field.NewPath("apiVersion")
	if object.GetAPIVersion() == "" {
		return field.Required(path, "must be a group and version, such as v1 or apps/v1")
	}
	gvk := object.GroupVersionKind()
	versions, ok := kinds()[gvk.Kind]
	ofGroup := func(version schema.GroupVersion) bool { return gvk.Group == version.Group }
	if !ok || supported(object) || strings.Contains(gvk.Group, ".") && !slices.ContainsFunc(versions, ofGroup) {
		return nil
	}
	return field.NotSupported(path, object.GetAPIVersion(), []string{versions[0].String()})
}

// unsupported records an ignored field, or an ignored object if the path is empty.
func (r *reader) unsupported(at location, path string) {
	r.objects.unsupported = append(r.objects.unsupported,
		Unsupported{Input: at.input, Document: at.document, Object: at.object, Path: path})
}

// addStrictErrors adds the errors of a strict decoder, with suggestions for unknown fields.
func (r *reader) addStrictErrors(at location, object *unstructured.Unstructured, err error) {
	typed, unknown := r.scheme.New(object.GroupVersionKind())
	for _, err := range strictErrors(err) {
		if unknown == nil {
			err = crdschema.WithSuggestion(err, reflect.TypeOf(typed))
		}
		r.addError(at, err)
	}
}

// strictErrors returns the individual errors of a strict decoder.
func strictErrors(err error) []error {
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		return strict.Errors()
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return []error{typeError(wrong)}
	}
	return []error{err}
}

// typeError returns the error for a value of a wrong type, with what to write instead if that is
// likely. The decoder knows the value only if it is a number.
func typeError(wrong *json.UnmarshalTypeError) error {
	isText, expected, fix := wrong.Value == "string", wrong.Type.String(), ""
	switch kind := wrong.Type.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Uint64:
		expected = "an integer"
		if isText {
			fix = ": write a number without quotes"
		}
	case kind == reflect.String:
		expected, fix = "a string", ": write the value in quotes"
	case kind == reflect.Slice:
		expected = "a list"
		if isText && wrong.Type.Elem().Kind() == reflect.String {
			fix = `, such as ["cat", "/tmp/x"]`
		}
	}
	return fmt.Errorf("%s: must be %s, not %s%s", fieldOf(wrong.Field), expected, wrong.Value, fix)
}

// fieldOf removes the names of embedded Go types, which begin with a capital letter, from
// the path of a field.
func fieldOf(path string) string {
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	steps = slices.DeleteFunc(steps, func(step string) bool { return step[0] >= 'A' && step[0] <= 'Z' })
	return strings.Join(steps, ".")
}

// withStringData merges stringData into data, as the API server does.
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

func (r *reader) addError(at location, err error) {
	r.errs = append(r.errs, &DocumentError{Input: at.input, Document: at.document, Object: at.object, Err: err})
}

func addErrors[E error](r *reader, at location, errs []E) {
	for _, err := range errs {
		r.addError(at, err)
	}
}

// finish runs the checks that need all documents.
func (r *reader) finish() {
	for _, check := range r.checks {
		check()
	}
	for _, name := range slices.Sorted(maps.Keys(r.options.Commands)) {
		if !r.commanded[name] {
			r.errs = append(r.errs, fmt.Errorf("--command: %q is invalid: no pod has a container with this name", name))
		}
	}
}
