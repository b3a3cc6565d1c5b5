// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/apply"
)

func TestRecent(t *testing.T) {
	cases := map[string]struct {
		uid    types.UID
		cached string
		unseen bool
	}{
		"the cache is as it was":             {uid: "a", cached: "90", unseen: true},
		"the cache shows a write in between": {uid: "a", cached: "99", unseen: true},
		"the cache shows the write":          {uid: "a", cached: "100"},
		"the cache shows a later write":      {uid: "a", cached: "1000"},
		"another object of the name":         {uid: "b", cached: "90"},
		"a version that is no number":        {uid: "a", cached: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recent := apply.NewRecent[string, int]()
			recent.Wrote("pod", "a", "100", 7)
			value, unseen := recent.Unseen("pod", tc.uid, tc.cached)
			if unseen != tc.unseen || (unseen && value != 7) {
				t.Errorf("Unseen = %d, %t; want unseen %t", value, unseen, tc.unseen)
			}
			// Once seen it stays so, whatever an older reader says.
			if _, again := recent.Unseen("pod", "a", "90"); again != tc.unseen {
				t.Errorf("a second look: unseen %t, want %t", again, tc.unseen)
			}
		})
	}
}

func TestRecentForget(t *testing.T) {
	recent := apply.NewRecent[string, int]()
	recent.Wrote("pod", "a", "100", 7)
	recent.Forget("pod")
	if _, unseen := recent.Unseen("pod", "a", "90"); unseen {
		t.Error("remembered after Forget")
	}
}
