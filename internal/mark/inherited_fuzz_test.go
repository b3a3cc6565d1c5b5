// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

// FuzzInherited parses arbitrary managedFields. The entries that the cache keeps must give the
// same result as all of them, and nothing may be removed from a pod that OpenKruise did not
// write.
func FuzzInherited(f *testing.F) {
	for _, seed := range []string{
		ownedSet,
		`{"f:metadata":{"f:labels":{".":{},"f:":{},"idle":{}},"f:annotations":null},"f:spec":{"f:nodeName":{}}}`,
		`{"f:status":{"f:conditions":{"k:{}":{},"k:[1]":{},"k:{\"type\":1}":{},"v:1":{}}}}`,
		`{"f:metadata":[]}`, `{`, ``, `null`,
	} {
		f.Add("kruise-manager", seed)
		f.Add("kubectl", seed)
	}
	f.Fuzz(func(t *testing.T, manager, fields string) {
		managed := builders.Pod("ns", "pod").Updated(manager, "status", fields).Build().ManagedFields
		whole, errWhole := mark.Inherited(managed)
		kept, errKept := mark.Inherited(mark.Entries(managed))
		if (errWhole == nil) != (errKept == nil) || !whole.Equal(kept) {
			t.Errorf("inherited from all entries: %v, %v; from the kept ones: %v, %v", whole, errWhole, kept, errKept)
		}
		if manager != "kruise-manager" && (errWhole != nil || len(whole) > 0) {
			t.Errorf("inherited from %q: %v, %v", manager, whole, errWhole)
		}
		for _, key := range mark.Leftover(whole, nil, mark.PodReport{}, nil, nil) {
			t.Errorf("%s is removed, and is not a mark", key)
		}
	})
}
