// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	crdschema "github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// Read decodes and validates all documents of the files. If documents are invalid, the error
// joins one DocumentError per error in any of them, in the order of the files and lines.
func Read(ctx context.Context, files []document.File, options Options) (Objects, error) {
	r := newReader(ctx, options)
	for _, file := range files {
		r.file(file)
	}
	r.finish()
	if len(r.errs) > 0 {
		return Objects{}, errors.Join(sorted(files, r.errs)...)
	}
	return r.objects, nil
}

// sorted returns the errors in the order of the files and lines, and then those that are about no document. Both a schema and a
// decoder can find one.
func sorted(files []document.File, errs []error) []error {
	order := make(map[string]int, len(files))
	for i, file := range files {
		order[file.Name] = i
	}
	place := func(err error) []int {
		var of *DocumentError
		if !errors.As(err, &of) {
			return []int{len(files)}
		}
		return []int{order[of.Input], of.Document, of.Line, of.Column}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return slices.Compare(place(a), place(b)) })
	return slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
}

// reader collects the objects and errors of the documents.
type reader struct {
	ctx     context.Context
	options Options
	objects Objects
	// schemas are the schemas of custom resources.
	schemas crdschema.Set
	errs    []error

	// seen contains the location of each object, by kind and name.
	seen map[string]Place
	// commanded has the containers that got a command of the options.
	commanded map[string]bool
	// checks are the checks that need all documents.
	checks []func()
	// injectors are the sets that inject containers into the pods.
	injectors []*injector
}

func newReader(ctx context.Context, options Options) *reader {
	return &reader{
		ctx: ctx, options: options, schemas: crdschema.Set{}, seen: map[string]Place{}, commanded: map[string]bool{},
		objects: Objects{
			ConfigMaps: map[types.NamespacedName]*corev1.ConfigMap{},
			Secrets:    map[types.NamespacedName]*corev1.Secret{},
			markers:    map[types.NamespacedName]Place{},
			parts:      map[types.NamespacedName]map[podPart]pathIn{},
		},
	}
}

// file reads the documents of one file.
func (r *reader) file(file document.File) {
	for _, d := range document.Split(file.Content) {
		at := Place{Input: file.Name, Document: d.Number}
		if !file.Generated {
			at.positions = d.Positions()
		}
		var content any
		if d.Err == nil {
			// The content is JSON, so only a text that encoding/json cannot read fails, and then the next step, too.
			_ = utiljson.Unmarshal(d.JSON, &content)
		}
		switch {
		case d.Err != nil:
			if !file.Generated {
				at.Line, at.Column, at.positions = d.ErrorLine(), 1, nil
			}
			r.addError(at, d.Err)
		case file.Skips(content):
		default:
			r.document(at, d.JSON, 0)
		}
	}
}

// maxListDepth bounds how deep lists of objects may contain lists: each level is encoded again.
const maxListDepth = 8

// document handles one document: an object or a List of objects, which is in a number of lists.
func (r *reader) document(at Place, encoded []byte, depth int) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		r.addError(at, fmt.Errorf("not a Kubernetes object: %w", err))
		return
	}
	at.Object = strings.TrimSpace(object.GetKind() + " " + object.GetName())
	if !object.IsList() {
		r.object(at, object, encoded)
		return
	}
	if depth == maxListDepth {
		r.addError(at, &fieldError{"items", fmt.Sprintf("more than %d lists inside each other", maxListDepth)})
		return
	}
	i := 0
	err := object.EachListItem(func(item runtime.Object) error {
		encoded, err := runtime.Encode(unstructured.UnstructuredJSONScheme, item)
		if err != nil {
			return fmt.Errorf("encode list item: %w", err)
		}
		of := at
		of.prefix += fmt.Sprintf("items[%d].", i)
		i++
		r.document(of, encoded, depth+1)
		return nil
	})
	if err != nil {
		r.addError(at, err)
	}
}

func (r *reader) object(at Place, object *unstructured.Unstructured, encoded []byte) {
	if err := checkVersion(object); err != nil {
		r.addError(at, err)
		return
	}
	if !supported(object) {
		r.otherKind(at, object.GroupVersionKind())
		return
	}
	if object.GroupVersionKind().Group == v1alpha1.GroupName {
		r.kruise(at, object, encoded)
		return
	}
	decoded := supportedKinds()[object.GetKind()].empty()
	if !r.decode(at, whole(object, decoded), encoded, decoded, false) {
		return
	}
	switch o := decoded.(type) {
	case *corev1.Pod:
		r.pod(at, o)
	case *corev1.ConfigMap:
		if r.named(at, o) {
			r.objects.ConfigMaps[nameOf(o)] = o
		}
	case *corev1.Secret:
		if r.named(at, o) {
			r.objects.Secrets[nameOf(o)] = withStringData(o)
		}
	case *corev1.PersistentVolumeClaim:
		// The folder of a claim is created for the pods that use it.
	default:
		r.workload(at, o, builtIn(o))
	}
}

// kind is a supported kind.
type kind struct {
	// versions are its groups and versions. The first is the one that errors suggest.
	versions []schema.GroupVersion
	// empty returns an empty object of the built-in kind.
	empty func() runtime.Object
}

func supportedKinds() map[string]kind {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	of := func(empty func() runtime.Object, versions ...schema.GroupVersion) kind { return kind{versions, empty} }
	all := map[string]kind{
		"Pod":                   of(func() runtime.Object { return &corev1.Pod{} }, core),
		"ConfigMap":             of(func() runtime.Object { return &corev1.ConfigMap{} }, core),
		"Secret":                of(func() runtime.Object { return &corev1.Secret{} }, core),
		"PersistentVolumeClaim": of(func() runtime.Object { return &corev1.PersistentVolumeClaim{} }, core),
		"Deployment":            of(func() runtime.Object { return &appsv1.Deployment{} }, apps),
		"ReplicaSet":            of(func() runtime.Object { return &appsv1.ReplicaSet{} }, apps),
		"StatefulSet":           of(func() runtime.Object { return &appsv1.StatefulSet{} }, apps),
		"DaemonSet":             of(func() runtime.Object { return &appsv1.DaemonSet{} }, apps),
		"Job":                   of(func() runtime.Object { return &batchv1.Job{} }, batch),
		"CronJob":               of(func() runtime.Object { return &batchv1.CronJob{} }, batch),
		apikind.Marker:          of(nil, v1alpha1.GroupVersion()),
	}
	for _, row := range kinds.Table() {
		if row.Role == kinds.Set || row.Role == kinds.Injector {
			builtIn := all[row.Kind]
			all[row.Kind] = of(builtIn.empty, append(builtIn.versions, row.Served()...)...)
		}
	}
	return all
}

// supported reports whether a local run supports the kind. It ignores other kinds, such as
// Services.
func supported(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	return slices.Contains(supportedKinds()[gvk.Kind].versions, gvk.GroupVersion())
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
	versions := supportedKinds()[gvk.Kind].versions
	ofGroup := func(version schema.GroupVersion) bool { return gvk.Group == version.Group }
	if versions == nil || supported(object) || strings.Contains(gvk.Group, ".") && !slices.ContainsFunc(versions, ofGroup) {
		return nil
	}
	use := versions[max(0, slices.IndexFunc(versions, ofGroup))]
	return field.NotSupported(path, object.GetAPIVersion(), []string{use.String()})
}

// otherKind records an object that a local run ignores, or the error about its kind.
func (r *reader) otherKind(at Place, gvk schema.GroupVersionKind) {
	problem, reason := apikind.Check(gvk), ""
	kind := kinds.ByGroupKind(gvk.GroupKind())
	switch {
	case problem != nil && problem.Reason == apikind.NotServed:
		reason = problem.Message
	case problem != nil:
		r.addError(at, &fieldError{problem.Field, strings.TrimSuffix(problem.Message+": "+problem.Fix, ": ")})
		return
	case kind != nil && kind.Role == kinds.Job:
		reason = "not in a local run: nothing creates its pods"
	}
	r.unsupported(at, "", reason)
}

// unsupported records an ignored field, or an ignored object if the path is empty.
func (r *reader) unsupported(at Place, path, reason string) {
	r.objects.unsupported = append(r.objects.unsupported, Unsupported{Place: at.field(path), Path: path, Reason: reason})
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

func (r *reader) addError(at Place, err error) {
	r.errs = append(r.errs, &DocumentError{Place: at.field(fieldOf(err)), Err: err})
}

func addErrors[E error](r *reader, at Place, errs []E) {
	for _, err := range errs {
		r.addError(at, err)
	}
}

// finish runs the checks that need all documents.
func (r *reader) finish() {
	// The checks name the fields of the pods as they were written.
	for _, check := range r.checks {
		check()
	}
	r.inject()
	for _, name := range slices.Sorted(maps.Keys(r.options.Commands)) {
		if !r.commanded[name] {
			r.errs = append(r.errs, fmt.Errorf("--command: %q is invalid: no pod has a container with this name", name))
		}
	}
}
