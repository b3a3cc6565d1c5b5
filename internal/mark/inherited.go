// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/plan"
)

// predecessor is the field manager of what OpenKruise's controllers write: the first
// part of their user agent, since they name no field manager themselves.
const predecessor = "kruise-manager"

// Entries returns what marks are decided by of a pod's managedFields: Seamark's own
// entry, and those of OpenKruise's controllers, cut down to labels, annotations and
// conditions. An entry that can't be read stays as it is, so that its reader says so.
func Entries(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	if own := Entry(managed); own != nil {
		kept = append(kept, *own)
	}
	for i := range managed {
		if !isPredecessors(&managed[i]) {
			continue
		}
		entry := managed[i]
		if set, err := fieldsOf(&entry); err == nil {
			body, err := json.Marshal(set.bare())
			if err != nil || set.isEmpty() {
				continue
			}
			entry.FieldsV1 = metav1.NewFieldsV1(string(body))
		}
		kept = append(kept, entry)
	}
	return kept
}

// Inherited returns the labels, annotations and conditions on the pod that OpenKruise's
// controllers have set and own, with whatever other owners. They are marks that it made
// as well as keys of its other features, so that none may be taken off for being here
// alone. It returns an error where the pod's managedFields can't be read.
func Inherited(managed []metav1.ManagedFieldsEntry) (map[Key]bool, error) {
	var inherited map[Key]bool
	for i := range managed {
		if !isPredecessors(&managed[i]) {
			continue
		}
		set, err := fieldsOf(&managed[i])
		if err != nil {
			return nil, err
		}
		keys, err := set.keys()
		if err != nil {
			return nil, err
		}
		if inherited == nil {
			inherited = make(map[Key]bool, len(keys))
		}
		for _, key := range keys {
			inherited[key] = true
		}
	}
	return inherited, nil
}

// Leftover returns which of the inherited keys must come off the pod by force, ordered by
// kind and name: an apply that leaves them out leaves them on, because OpenKruise owns
// them too. They are keys that the pod shouldn't have, and that were Seamark's until now
// or are declared by a probe whose state is known. While its state isn't known, a mark
// that OpenKruise made for it stays, and so does a condition that a provider writes.
func Leftover(inherited map[Key]bool, probes []plan.Probe, report Report, owned, desired Marks) []Key {
	if len(inherited) == 0 {
		return nil
	}
	claims, _ := Claim(probes)
	var leftover []Key
	for key := range inherited {
		id, claimed := claims[key]
		_, known := report.States[id]
		providers := report.Provider && key.Kind == KindCondition
		if !desired.Has(key) && (owned.Has(key) || claimed && known && !providers) {
			leftover = append(leftover, key)
		}
	}
	slices.SortFunc(leftover, compareKeys)
	return leftover
}

func isPredecessors(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == predecessor && entry.FieldsV1 != nil &&
		entry.Operation == metav1.ManagedFieldsOperationUpdate
}

func fieldsOf(entry *metav1.ManagedFieldsEntry) (ownedFields, error) {
	var set ownedFields
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
		return set, fmt.Errorf("reading the managed fields of %q: %w", entry.Manager, err)
	}
	return set, nil
}

// keys returns the keys of the marks in the set.
func (f *ownedFields) keys() ([]Key, error) {
	var keys []Key
	add := func(kind Kind, set fields) {
		for field := range set {
			if name, isKey := strings.CutPrefix(field, "f:"); isKey {
				keys = append(keys, Key{kind, name})
			}
		}
	}
	add(KindLabel, f.Metadata.Labels)
	add(KindAnnotation, f.Metadata.Annotations)
	for field := range f.Status.Conditions {
		conditionType, isElement, err := elementType(field)
		if err != nil {
			return nil, err
		}
		if isElement {
			keys = append(keys, Key{KindCondition, conditionType})
		}
	}
	return keys, nil
}

// elementType returns the type of the condition that an element of the set names.
func elementType(field string) (conditionType string, isElement bool, err error) {
	keys, isElement := strings.CutPrefix(field, "k:")
	if !isElement {
		return "", false, nil
	}
	var element struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal([]byte(keys), &element); err != nil {
		return "", false, fmt.Errorf("reading the managed field %s: %w", field, err)
	}
	return element.Type, true, nil
}

func (f *ownedFields) isEmpty() bool {
	return len(f.Metadata.Labels)+len(f.Metadata.Annotations)+len(f.Status.Conditions) == 0
}

// bare returns the set without what is below its keys.
func (f *ownedFields) bare() ownedFields {
	var bare ownedFields
	for _, level := range []struct{ from, to *fields }{
		{&f.Metadata.Labels, &bare.Metadata.Labels},
		{&f.Metadata.Annotations, &bare.Metadata.Annotations},
		{&f.Status.Conditions, &bare.Status.Conditions},
	} {
		if len(*level.from) == 0 {
			continue
		}
		*level.to = make(fields, len(*level.from))
		for field := range *level.from {
			(*level.to)[field] = json.RawMessage("{}")
		}
	}
	return bare
}
