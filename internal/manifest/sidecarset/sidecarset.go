// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sidecarset injects the SidecarSets of manifests into the pods of the same manifests. It is pure.
package sidecarset

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/history"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/inject"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/overlap"
)

// Set is an accepted set with what it injects. Manifests have no earlier revisions.
type Set struct {
	*v1alpha1.SidecarSet
	revision *inject.Revision
}

// New returns the set with the containers of its manifest.
func New(set *v1alpha1.SidecarSet) (*Set, error) {
	stored, err := history.New(set, metav1.NamespaceDefault, 1, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the place of the set
	}
	revision, err := history.Parse(stored)
	return &Set{set, revision}, err //nolint:wrapcheck // see above
}

// Selects reports whether the set selects the pod, which has all its labels.
func (s *Set) Selects(pod *corev1.Pod) bool {
	return matches(s.Spec.Selector, pod.Labels) && s.SelectsNamespace(pod.Namespace, false)
}

// SelectsNamespace reports whether the set selects pods of a namespace. Only its name is known: others is whether it counts as
// selected by a selector that depends on more.
func (s *Set) SelectsNamespace(name string, others bool) bool {
	return name != metav1.NamespaceSystem && !slices.ContainsFunc(overlap.Namespaces(&s.Spec), func(selector *metav1.LabelSelector) bool {
		return !matches(selector, labels.Set{corev1.LabelMetadataName: name}) && (!others || OnlyNames(selector))
	})
}

// matches reports whether the labels match a selector. The schema has checked it.
func matches(selector *metav1.LabelSelector, set labels.Set) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(set)
}

// OnlyNames reports whether a selector of namespaces depends on their names only.
func OnlyNames(selector *metav1.LabelSelector) bool {
	keys := slices.Collect(maps.Keys(selector.MatchLabels))
	for _, requirement := range selector.MatchExpressions {
		keys = append(keys, requirement.Key)
	}
	return !slices.ContainsFunc(keys, func(key string) bool { return key != corev1.LabelMetadataName })
}

// Inject returns the pod with the containers of the set, as a cluster creates it: see inject.Inject. The pod may have those of the
// other sets.
func (s *Set) Inject(pod *corev1.Pod, others []*Set, at metav1.Time) (*corev1.Pod, []string, error) {
	return inject.Inject(pod, s.revision, func(name, _ string) *inject.Revision { //nolint:wrapcheck // see New
		if at := slices.IndexFunc(others, func(other *Set) bool { return other.Name == name }); at >= 0 {
			return others[at].revision
		}
		return nil
	}, at)
}
