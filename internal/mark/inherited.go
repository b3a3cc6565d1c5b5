// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/seamark-dev/seamark/internal/plan"
)

// predecessor is the field manager of OpenKruise's controllers: the first part of their
// user agent, because they do not set a field manager.
const predecessor = "kruise-manager"

// Entries keeps the managedFields entries that marks depend on: Seamark's own, and those of
// OpenKruise's controllers, reduced to labels, annotations and conditions. It keeps an
// entry that cannot be parsed as it is, so that Inherited and Owned return the error.
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
		if fields, err := parse(&entry); err == nil {
			marks := onlyMarks(fields)
			body, err := marks.ToJSON()
			if err != nil || marks.Empty() {
				continue
			}
			entry.FieldsV1 = metav1.NewFieldsV1(string(body))
		}
		kept = append(kept, entry)
	}
	return kept
}

// onlyMarks returns the paths to marks, without those to fields of conditions.
func onlyMarks(fields *fieldpath.Set) *fieldpath.Set {
	marks := fieldpath.NewSet()
	fields.Iterate(func(path fieldpath.Path) {
		if _, _, isMark := keyOf(path); isMark {
			marks.Insert(path[:depth])
		}
	})
	return marks
}

// Inherited returns the keys of the pod's labels, annotations and conditions that
// OpenKruise's controllers set and still own, alone or with other managers. They include
// keys of OpenKruise's other features, so being inherited is not a reason to remove a key.
// It returns an error if one of the managedFields entries cannot be parsed.
func Inherited(managed []metav1.ManagedFieldsEntry) (sets.Set[Key], error) {
	var inherited sets.Set[Key]
	for i := range managed {
		if !isPredecessors(&managed[i]) {
			continue
		}
		fields, err := parse(&managed[i])
		if err != nil {
			return nil, err
		}
		if inherited == nil {
			inherited = sets.New[Key]()
		}
		fields.Iterate(func(path fieldpath.Path) {
			if key, _, isMark := keyOf(path); isMark {
				inherited.Insert(key)
			}
		})
	}
	return inherited, nil
}

// Leftover returns the inherited keys that Seamark must remove explicitly, ordered by kind
// and name: an apply that omits them does not remove them, because OpenKruise owns them
// too. They are keys that the pod should not have and that Seamark still owns, or that a
// probe with a known state declares. As long as the state is unknown, a mark that OpenKruise
// set for the probe stays. So does a condition that a provider writes.
func Leftover(inherited sets.Set[Key], probes []plan.PlannedProbe, report PodReport, owned, desired Marks) []Key {
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
