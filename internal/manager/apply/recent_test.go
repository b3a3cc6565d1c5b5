// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manager/apply"
)

func TestRecent(t *testing.T) {
	cases := map[string]struct {
		uid    types.UID
		cached string
		unseen bool
	}{
		"older cache":                 {uid: "a", cached: "90", unseen: true},
		"cache with an earlier write": {uid: "a", cached: "99", unseen: true},
		"cache with the write":        {uid: "a", cached: "100"},
		"cache with a later write":    {uid: "a", cached: "1000"},
		"recreated object":            {uid: "b", cached: "90"},
		"invalid resource version":    {uid: "a", cached: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recent := &apply.Recent[string, int]{}
			recent.Wrote("pod", "a", "100", 7)
			value, unseen := recent.Unseen("pod", tc.uid, tc.cached)
			if unseen != tc.unseen || (unseen && value != 7) {
				t.Errorf("Unseen = %d, %t; want unseen %t", value, unseen, tc.unseen)
			}
			// A seen write stays seen, even for an older cache.
			if _, again := recent.Unseen("pod", "a", "90"); again != tc.unseen {
				t.Errorf("second call: unseen %t, want %t", again, tc.unseen)
			}
		})
	}
}

func TestRecentSeen(t *testing.T) {
	cases := map[string]struct {
		uid    types.UID
		cached string
		unseen bool
	}{
		"older cache":              {uid: "a", cached: "99", unseen: true},
		"cache with the write":     {uid: "a", cached: "100"},
		"cache with a later write": {uid: "a", cached: "1000"},
		"late event of another":    {uid: "b", cached: "1000", unseen: true},
		"invalid resource version": {uid: "a", cached: "x", unseen: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recent := &apply.Recent[string, int]{}
			recent.Wrote("pod", "a", "100", 7)
			recent.Seen("pod", tc.uid, tc.cached)
			if _, unseen := recent.Unseen("pod", "a", "90"); unseen != tc.unseen {
				t.Errorf("unseen %t, want %t", unseen, tc.unseen)
			}
		})
	}
}
