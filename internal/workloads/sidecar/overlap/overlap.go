// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overlap decides whether two SidecarSets can select the same pod. It is pure, and exact: the keys of
// labels are independent of each other, so two selectors exclude each other only if the requirements for one
// key do.
package overlap

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Possible reports whether there can be a pod that both sets select.
func Possible(a, b *v1alpha1.SidecarSetSpec) bool {
	return satisfiable(a.Selector, b.Selector) && satisfiable(append(Namespaces(a), Namespaces(b)...)...)
}

// Namespaces returns the selectors that a namespace must match. Its name is the value of a label.
func Namespaces(spec *v1alpha1.SidecarSetSpec) []*metav1.LabelSelector {
	name, selector := spec.Namespace, spec.NamespaceSelector
	if other := spec.SpecificNamespace; other != nil {
		if name == "" {
			name = other.Namespace
		}
		if selector == nil {
			selector = other.NamespaceSelector
		}
	}
	var all []*metav1.LabelSelector
	if name != "" {
		all = append(all, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}})
	}
	if selector != nil {
		all = append(all, selector)
	}
	return all
}

// label is what the requirements say about the value of one key.
type label struct {
	exists, absent bool
	// in are the permitted values, or nil if there is no requirement.
	in    sets.Set[string]
	notIn sets.Set[string]
}

// possible reports whether a label, or no label, meets the requirements.
func (l *label) possible() bool {
	switch {
	case l.in != nil:
		return !l.absent && len(l.in.Difference(l.notIn)) > 0
	default:
		return !l.absent || !l.exists
	}
}

func (l *label) permit(values sets.Set[string]) {
	if l.in == nil {
		l.in = values
	} else {
		l.in = l.in.Intersection(values)
	}
}

// satisfiable reports whether labels can match all selectors.
func satisfiable(selectors ...*metav1.LabelSelector) bool {
	labels := make(map[string]*label)
	labelOf := func(key string) *label {
		if labels[key] == nil {
			labels[key] = &label{notIn: sets.New[string]()}
		}
		return labels[key]
	}
	for _, selector := range selectors {
		if selector == nil {
			continue
		}
		for key, value := range selector.MatchLabels {
			labelOf(key).permit(sets.New(value))
		}
		for _, requirement := range selector.MatchExpressions {
			l := labelOf(requirement.Key)
			switch requirement.Operator {
			case metav1.LabelSelectorOpIn:
				l.permit(sets.New(requirement.Values...))
			case metav1.LabelSelectorOpNotIn:
				l.notIn.Insert(requirement.Values...)
			case metav1.LabelSelectorOpExists:
				l.exists = true
			case metav1.LabelSelectorOpDoesNotExist:
				l.absent = true
			}
		}
	}
	for _, l := range labels {
		if !l.possible() {
			return false
		}
	}
	return true
}
