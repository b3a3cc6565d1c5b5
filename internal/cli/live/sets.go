// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
)

// SetKinds returns the kinds whose objects have a rollout.
func SetKinds() []kinds.Kind {
	return slices.DeleteFunc(kinds.Table(), func(kind kinds.Kind) bool { return kind.Role != kinds.Set })
}

// Sets are the objects of SetKinds in a watch.
type Sets struct {
	// Unread are the kinds that may not be read, and where. They are complete when Follow returns.
	Unread []permission.Missing

	signal  *Signal
	byKind  map[string]*Collection[client.Object]
	changed bool
}

// NewSets returns no sets. The signal is touched when they change.
func NewSets(signal *Signal) *Sets {
	s := &Sets{signal: signal, byKind: map[string]*Collection[client.Object]{}}
	for _, kind := range SetKinds() {
		s.byKind[kind.Kind] = NewCollection(signal, All, trimSet, func(object any) {
			s.changed = true
			signal.Touch(object)
		})
	}
	return s
}

// Resources returns the kinds in the namespace, or in all if it is empty.
func (s *Sets) Resources(namespace string) []Resource {
	var resources []Resource
	for _, kind := range SetKinds() {
		resources = append(resources, ResourceOf(permission.Resource(kind.Definition()), namespace, kind.NewList(), s.byKind[kind.Kind]))
	}
	return resources
}

// Lacks records that sets may not be read.
func (s *Sets) Lacks(missing permission.Missing) error {
	s.signal.Lock()
	defer s.signal.Unlock()
	for _, kind := range SetKinds() {
		if kind.Definition() == string(missing.Resource) {
			s.Unread = append(s.Unread, missing)
		}
	}
	return nil
}

// List returns the sets.
func (s *Sets) List() []model.Set {
	s.signal.Lock()
	defer s.signal.Unlock()
	var sets []model.Set
	for kind, collection := range s.byKind {
		for _, object := range collection.Items {
			sets = append(sets, SetOf(kind, object))
		}
	}
	return sets
}

// Changed reports whether sets have changed since the last call.
func (s *Sets) Changed() bool {
	s.signal.Lock()
	defer s.signal.Unlock()
	changed := s.changed
	s.changed = false
	return changed
}

// trimSet removes from a set what its rollout does not depend on: templates are the largest part of a set.
func trimSet(object client.Object) client.Object {
	set, ok := setview.Of(object)
	if !ok {
		return object
	}
	object.SetManagedFields(nil)
	object.SetAnnotations(nil)
	*set.Template = corev1.PodTemplateSpec{}
	return object
}

// SetOf returns a set of the kind with its rollout.
func SetOf(kind string, object client.Object) model.Set {
	// Collections have no objects of other kinds.
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
