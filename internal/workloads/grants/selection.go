// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

// selection is a SidecarSet with the selectors of the namespaces in which it may update pods: those of its specification and
// those of what is in force. The selectors are compiled once, because each namespace is compared with all sets.
type selection struct {
	*v1alpha1.SidecarSet
	targets [][]labels.Selector
}

// newSelection compiles a SidecarSet. One that updates no pods selects nothing.
func newSelection(set *v1alpha1.SidecarSet) *selection {
	s := &selection{SidecarSet: set}
	if set.Spec.UpdateStrategy.Type == v1alpha1.NotUpdateSidecarSetStrategyType {
		return s
	}
	specs := []*v1alpha1.SidecarSetSpec{&set.Spec}
	if set.Status.InForce != nil {
		specs = append(specs, set.Status.InForce.Targets())
	}
	for _, spec := range specs {
		var target []labels.Selector
		for _, stated := range overlap.Namespaces(spec) {
			selector, err := metav1.LabelSelectorAsSelector(stated)
			if err != nil {
				selector = labels.Nothing()
			}
			target = append(target, selector)
		}
		s.targets = append(s.targets, target)
	}
	return s
}

// selects reports whether the SidecarSet may update pods in the namespace.
func (s *selection) selects(namespace *metav1.PartialObjectMetadata) bool {
	namespaceLabels := labels.Set{corev1.LabelMetadataName: namespace.Name}
	maps.Copy(namespaceLabels, namespace.Labels)
	return slices.ContainsFunc(s.targets, func(target []labels.Selector) bool {
		return !slices.ContainsFunc(target, func(each labels.Selector) bool { return !each.Matches(namespaceLabels) })
	})
}

// selectionEvents returns a handler that calls changed with the namespaces that a changed SidecarSet selects or has selected.
// A rollout writes the status often, without a change of what is selected.
func (w *world) selectionEvents(changed func(namespace string)) toolscache.ResourceEventHandler {
	affect := func(sets ...any) {
		for _, object := range w.namespaces.GetIndexer().List() {
			namespace, ok := object.(*metav1.PartialObjectMetadata)
			if ok && slices.ContainsFunc(sets, func(set any) bool {
				typed, ok := set.(*selection)
				return ok && typed.selects(namespace)
			}) {
				changed(namespace.Name)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(set any) { affect(set) },
		UpdateFunc: func(before, after any) {
			previous, current := before.(*selection), after.(*selection) //nolint:forcetypeassert // The transformation returns nothing else.
			if !equality.Semantic.DeepEqual(previous.Spec, current.Spec) || !equality.Semantic.DeepEqual(previous.Status.InForce, current.Status.InForce) {
				affect(previous, current)
			}
		},
		DeleteFunc: func(set any) {
			if last, ok := set.(toolscache.DeletedFinalStateUnknown); ok {
				set = last.Obj
			}
			affect(set)
		},
	}
}

// trimSidecarSet keeps the namespaces that a set selects, and whether it updates pods. A field that cannot be decoded selects
// nothing: seamark-workloads does not serve such a set.
func trimSidecarSet(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: full.GetName(), ResourceVersion: full.GetResourceVersion()}}
	spec, _, _ := unstructured.NestedMap(full.Object, "spec")
	parts := map[string]any{}
	for _, field := range []string{"namespace", "namespaceSelector", "specificNamespace", "updateStrategy"} {
		if value, found := spec[field]; found {
			parts[field] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(parts, &set.Spec); err != nil {
		set.Spec = v1alpha1.SidecarSetSpec{UpdateStrategy: v1alpha1.SidecarSetUpdateStrategy{Type: v1alpha1.NotUpdateSidecarSetStrategyType}}
	}
	force, found, _ := unstructured.NestedMap(full.Object, "status", "inForce")
	if found {
		set.Status.InForce = &v1alpha1.SidecarSetInForce{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(force, set.Status.InForce); err != nil {
			set.Status.InForce = nil
		}
	}
	return newSelection(set), nil
}
