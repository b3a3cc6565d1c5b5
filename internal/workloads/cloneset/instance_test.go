// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
)

// TestInstanceID checks that IDs are parts of valid names, stable, and different.
func TestInstanceID(t *testing.T) {
	seen := map[string]int{}
	for serial := range int64(3000) {
		id := cloneset.InstanceID("set", serial)
		if len(id) != 5 || strings.Trim(id, "bcdfghjklmnpqrstvwxz2456789") != "" {
			t.Fatalf("ID of serial %d is %q, want 5 characters of the alphabet", serial, id)
		}
		if again := cloneset.InstanceID("set", serial); again != id {
			t.Fatalf("IDs of serial %d are %q and %q", serial, id, again)
		}
		seen[id]++
	}
	if len(seen) != 3000 {
		t.Errorf("%d different IDs of 3000 pods", len(seen))
	}
	if cloneset.InstanceID("a", 1) == cloneset.InstanceID("b", 1) {
		t.Error("two sets have the same first ID")
	}
}
