// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package initialize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/seamark-dev/seamark/internal/cli/lint/rules"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/apikind"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/internal/manifest/files"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// workload is the workload whose pods the marker selects.
type workload struct {
	// file has the workload. The marker is compared with it.
	file   document.File
	object *unstructured.Unstructured
	declared
}

// declared are the fields that all workloads have.
type declared struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Selector metav1.LabelSelector   `json:"selector"`
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// readWorkload returns the only workload in the file of the flag.
func (o *Options) readWorkload(ctx context.Context) (*workload, error) {
	manifests, err := (&files.Loader{Stdin: o.In}).Load(ctx, []string{o.Workload})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	var found []*workload
	var names []string
	for _, file := range manifests {
		objects, err := file.Objects()
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the file
		}
		for _, object := range objects {
			if !isWorkload(object) {
				continue
			}
			w := &workload{file: file, object: object}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &w.declared); err != nil {
				err = fmt.Errorf("%s: %s %s: %w", file.Name, object.GetKind(), object.GetName(), err)
				_, located := manifest.Read(ctx, []document.File{file}, manifest.Options{})
				return nil, cmp.Or(located, err) // The first names the fields and their lines.
			}
			found, names = append(found, w), append(names, object.GetKind()+" "+object.GetName())
		}
	}
	switch len(found) {
	case 0:
		if err := wrongKinds(ctx, manifests); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: no workload: must have a %s, or a %s of apps.kruise.io", o.Workload, orList(builtIn()), orList(sets()))
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("%s: %d workloads (%s): must be one", o.Workload, len(found), text.List(names, text.MaxNames))
	}
}

func builtIn() []string { return []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} }

// sets returns the kinds of apps.kruise.io whose objects run pods until they are deleted.
func sets() []string {
	var names []string
	for _, kind := range kinds.Table() {
		if kind.Role == kinds.Set {
			names = append(names, kind.Kind)
		}
	}
	return names
}

// wrongKinds returns the errors that seamark lint finds about the kinds and versions of objects, as one error.
func wrongKinds(ctx context.Context, manifests []document.File) error {
	var errs []error
	for _, f := range (&rules.Linter{}).Check(ctx, manifests).Findings {
		if f.Severity == rules.Error && (f.Field == "kind" || f.Field == "apiVersion") {
			errs = append(errs, f.Err())
		}
	}
	return errors.Join(errs...)
}

func isWorkload(object *unstructured.Unstructured) bool {
	gk := object.GroupVersionKind().GroupKind()
	if kind := kinds.ByGroupKind(gk); kind != nil {
		return kind.Role == kinds.Set
	}
	return gk.Group == appsv1.GroupName && slices.Contains(builtIn(), gk.Kind)
}

// use sets what the workload says and no flag sets.
func (o *Options) use(w *workload, errs *flagErrors) {
	if o.marker.Namespace == "" {
		o.marker.Namespace = w.Metadata.Namespace
	}
	if o.marker.Name == "" {
		o.marker.Name = w.Metadata.Name
	}
	if o.Selector == "" {
		o.marker.Spec.Selector = &w.Spec.Selector
		if len(w.Spec.Selector.MatchLabels)+len(w.Spec.Selector.MatchExpressions) == 0 {
			errs.note("filename", errors.New(strings.Join(append([]string{w.Metadata.Name + " has no spec.selector"}, w.unknown()...), "; ")))
		}
	}
	if o.probe.ContainerName != "" {
		return
	}
	names := w.containers()
	if len(names) == 1 {
		o.probe.ContainerName = names[0]
		return
	}
	errs.note("container", errors.New("required: must be "+orList(names)))
}

// unknown returns the fields of the manifest that the kind does not have, each with advice.
func (w *workload) unknown() []string {
	of, isKnown := apikind.Types()[w.object.GroupVersionKind()]
	if builtIn, err := scheme.Scheme.New(w.object.GroupVersionKind()); err == nil && !isKnown {
		of, isKnown = reflect.TypeOf(builtIn).Elem(), true
	}
	if !isKnown {
		return nil
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(w.object.Object, reflect.New(of).Interface(), true)
	strict, isStrict := runtime.AsStrictDecodingError(err)
	if !isStrict {
		return nil
	}
	var fields []string
	for _, err := range strict.Errors() {
		if path, is := schema.UnknownFieldIn(err); is {
			fields = append(fields, path+": "+schema.Unknown(w.object.Object, path, of))
		}
	}
	return fields
}

// containers returns the names of the containers that can be probed.
func (w *workload) containers() []string {
	var names []string
	for i := range w.Spec.Template.Spec.Containers {
		names = append(names, w.Spec.Template.Spec.Containers[i].Name)
	}
	for i := range w.Spec.Template.Spec.InitContainers {
		if c := &w.Spec.Template.Spec.InitContainers[i]; plan.Restartable(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// orList returns the names as what a value must be. There may be fewer than two.
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return printing.OneOf(names)
}
