// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersource

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// SetKinds returns the kinds whose objects have a rollout.
func SetKinds() []kinds.Kind {
	return slices.DeleteFunc(kinds.Table(), func(kind kinds.Kind) bool { return kind.Role != kinds.Set })
}

// TrimSet removes from a set what its rollout does not depend on: templates are the largest part of a set.
func TrimSet(object client.Object) client.Object {
	set, ok := setview.Of(object)
	if !ok {
		return object
	}
	object.SetManagedFields(nil)
	object.SetAnnotations(nil)
	*set.Template = corev1.PodTemplateSpec{}
	return object
}

// sets returns the sets of the namespace, or of all namespaces if it is empty.
func (s *Source) sets(namespace string) *model.Sets {
	all := []model.Set{}
	for kind, informer := range s.informers.Sets {
		for _, object := range inNamespace[client.Object](informer.GetIndexer(), namespace) {
			all = append(all, SetOf(kind, object))
		}
	}
	sets := model.SetsOf(all, s.informers.SetsNote)
	return &sets
}

// SetOf returns a set of the kind with its rollout.
func SetOf(kind string, object client.Object) model.Set {
	// The cache has no objects of other kinds.
	set, _ := setview.Of(object)
	p := &set.Progress
	state := set.State()
	const longestName = 253
	return model.Set{
		SetID:    model.SetID{Namespace: object.GetNamespace(), Kind: kind, Name: object.GetName()},
		Revision: text.Truncate(p.Revision, longestName), Desired: p.Desired, Updated: p.Updated, Available: p.Available,
		Phase: string(state.Phase), Reason: string(state.Reason), Message: text.Message(state.Message),
		Problem: state.Phase == rollout.Stalled || state.Phase == rollout.Progressing && p.Failing != "", Complete: state.Phase == rollout.Complete,
	}
}
