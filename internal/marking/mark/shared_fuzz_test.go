// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

// FuzzShared parses arbitrary managedFields of another manager. The entries that the cache keeps
// must give the same result as all of them, and keys that Seamark does not own are not shared.
func FuzzShared(f *testing.F) {
	for _, seed := range []string{
		ownedSet,
		`{"f:metadata":{"f:labels":{".":{},"f:":{},"gone":{}},"f:annotations":null},"f:spec":{"f:nodeName":{}}}`,
		`{"f:status":{"f:conditions":{"k:{}":{},"k:[1]":{},"k:{\"type\":1}":{},"v:1":{}}}}`,
		`{"f:metadata":[]}`, `{`, ``, `null`,
	} {
		f.Add(ownedSet, seed)
		f.Add(seed, ownedSet)
	}
	f.Fuzz(func(t *testing.T, own, fields string) {
		pod := builders.Pod("ns", "pod").ManagedFields("seamark", "status", own).Updated("kubectl", "", fields).Build()
		whole := mark.Shared(pod.ManagedFields)
		kept := mark.Shared(mark.NewParser().Entries(pod.ManagedFields))
		if !whole.Equal(kept) {
			t.Errorf("shared in all entries: %v; in the kept ones: %v", whole, kept)
		}
		alone := builders.Pod("ns", "pod").Updated("kubectl", "", fields).Build()
		if shared := mark.Shared(alone.ManagedFields); len(shared) > 0 {
			t.Errorf("%v is shared with nobody", shared)
		}
	})
}
