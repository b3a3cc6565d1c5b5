// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"maps"
	"testing"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

// FuzzInherited reads any managed fields. What the cache keeps of them says the same as
// the whole, and nothing comes off a pod that OpenKruise has not written.
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
		if (errWhole == nil) != (errKept == nil) || !maps.Equal(whole, kept) {
			t.Errorf("inherited %v, %v of the whole, %v, %v of what is kept", whole, errWhole, kept, errKept)
		}
		if manager != "kruise-manager" && (errWhole != nil || len(whole) > 0) {
			t.Errorf("the fields of %q gave %v, %v", manager, whole, errWhole)
		}
		owned := mark.Marks{}
		for _, key := range mark.Leftover(whole, nil, mark.Report{}, owned, mark.Marks{}) {
			t.Errorf("%s comes off, which is nobody's mark", key)
		}
	})
}
