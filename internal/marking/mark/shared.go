// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// Entries keeps the managedFields entries that marks depend on: Seamark's own, and those of
// other managers that own one of Seamark's marks too, reduced to these marks.
func (p *Parser) Entries(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	own := Entry(managed)
	if own == nil {
		return nil
	}
	kept := []metav1.ManagedFieldsEntry{*own}
	for entry, keys := range p.coOwners(managed) {
		if body, err := keys.ToJSON(); err == nil {
			reduced := *entry
			reduced.FieldsV1 = metav1.NewFieldsV1(string(body))
			kept = append(kept, reduced)
		}
	}
	return kept
}

// SameFields reports whether marks depend on the same fields in both lists of managedFields entries.
// It may be false for entries that differ in their form only.
func SameFields(before, after []metav1.ManagedFieldsEntry) bool {
	old, entry := Entry(before), Entry(after)
	if old == nil || entry == nil {
		return old == entry
	}
	return slices.EqualFunc(before, after, func(a, b metav1.ManagedFieldsEntry) bool {
		return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
			(a.FieldsV1 == b.FieldsV1 || a.FieldsV1 != nil && b.FieldsV1 != nil && a.FieldsV1.Equal(*b.FieldsV1))
	})
}

// Shared returns the keys of Seamark's marks that other managers own too: those that set the
// same value. An apply that omits such a key does not remove it.
func Shared(managed []metav1.ManagedFieldsEntry) sets.Set[Key] {
	shared := sets.New[Key]()
	for _, keys := range (*Parser)(nil).coOwners(managed) {
		keys.Iterate(func(path fieldpath.Path) {
			if key, _, isMark := keyOf(path); isMark {
				shared.Insert(key)
			}
		})
	}
	return shared
}

// coOwners calls yield for each entry of another manager that owns marks of Seamark's entry, with
// the paths to these marks. It ignores entries that cannot be parsed.
func (p *Parser) coOwners(managed []metav1.ManagedFieldsEntry) func(yield func(*metav1.ManagedFieldsEntry, *fieldpath.Set) bool) {
	return func(yield func(*metav1.ManagedFieldsEntry, *fieldpath.Set) bool) {
		own := Entry(managed)
		if own == nil || own.FieldsV1 == nil || len(managed) == 1 {
			return
		}
		fields, err := p.fields(own)
		if err != nil {
			return
		}
		var mine *fieldpath.Set
		for i := range managed {
			entry := &managed[i]
			if entry == own || entry.FieldsV1 == nil || !mentions(entry.FieldsV1.GetRawBytes(), fields) {
				continue
			}
			if mine == nil {
				parsed, err := parse(own)
				if err != nil {
					return
				}
				mine = paths(parsed)
			}
			theirs, err := parse(entry)
			if err != nil {
				continue
			}
			if shared := paths(theirs).Intersection(mine); !shared.Empty() && !yield(entry, shared) {
				return
			}
		}
	}
}

// Owner is a writer of a label, annotation or condition.
type Owner struct {
	// Manager is the name of the field manager.
	Manager string
	// Time is when it last changed a field of the object. It is zero if unknown.
	Time metav1.Time
}

// Owners returns the managers that own each label, annotation and condition, in the order of the
// entries. It ignores entries that cannot be parsed.
func Owners(managed []metav1.ManagedFieldsEntry) map[Key][]Owner {
	owners := make(map[Key][]Owner)
	for i := range managed {
		entry := &managed[i]
		if entry.FieldsV1 == nil {
			continue
		}
		fields, err := parse(entry)
		if err != nil {
			continue
		}
		owner := Owner{Manager: entry.Manager}
		if entry.Time != nil {
			owner.Time = *entry.Time
		}
		paths(fields).Iterate(func(path fieldpath.Path) {
			if key, _, isMark := keyOf(path); isMark && !slices.Contains(owners[key], owner) {
				owners[key] = append(owners[key], owner)
			}
		})
	}
	return owners
}

// paths returns the paths to marks, without those to fields of conditions.
func paths(fields *fieldpath.Set) *fieldpath.Set {
	marks := fieldpath.NewSet()
	fields.Iterate(func(path fieldpath.Path) {
		if _, _, isMark := keyOf(path); isMark {
			marks.Insert(path[:depth])
		}
	})
	return marks
}

// mentions reports whether the encoded fields contain the name of one of the marks. It avoids
// parsing the entries of most managers, which are large.
func mentions(raw []byte, marks []ownedField) bool {
	return slices.ContainsFunc(marks, func(f ownedField) bool { return bytes.Contains(raw, []byte(f.key.Name)) })
}

// Leftover returns the keys that Seamark must remove explicitly, ordered by kind and name,
// because an apply that omits them does not remove them: marks that the pod should not have
// and that other managers own too, and labels and annotations that a probe with a known state
// declares but that Seamark has never set, such as those of a pod template. As long as the state
// is unknown, they stay. So does a condition that a provider writes.
func Leftover(pod *corev1.Pod, probes []plan.PlannedProbe, report PodReport, owned, desired Marks) []Key {
	var leftover []Key
	shared := Shared(pod.ManagedFields)
	for key := range owned {
		providers := report.Provider && key.Kind == KindCondition
		if shared.Has(key) && !desired.Has(key) && !providers {
			leftover = append(leftover, key)
		}
	}
	claims, _ := Claim(probes)
	for _, probe := range probes {
		if _, known := report.State(probe); !known {
			continue
		}
		for _, key := range Declared(probe.Source) {
			_, found := key.In(pod)
			if found && key.Kind != KindCondition && claims[key] == probe.ID && !owned.Has(key) && !desired.Has(key) {
				leftover = append(leftover, key)
			}
		}
	}
	slices.SortFunc(leftover, compareKeys)
	return leftover
}
