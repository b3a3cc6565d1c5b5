// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/manager/apply"
)

func TestExpectations(t *testing.T) {
	cases := map[string]struct {
		uid     types.UID
		cached  string
		pending bool
	}{
		"older cache":                 {uid: "a", cached: "90", pending: true},
		"cache with an earlier write": {uid: "a", cached: "99", pending: true},
		"cache with the write":        {uid: "a", cached: "100"},
		"cache with a later write":    {uid: "a", cached: "1000"},
		"recreated object":            {uid: "b", cached: "90"},
		"invalid resource version":    {uid: "a", cached: "x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expectations := &apply.Expectations[string, int]{}
			expectations.Expect("pod", "a", "100", 7)
			value, pending := expectations.Pending("pod", tc.uid, tc.cached)
			if pending != tc.pending || (pending && value != 7) {
				t.Errorf("Pending = %d, %t; want pending %t", value, pending, tc.pending)
			}
			// A seen write stays seen, even for an older cache.
			if _, again := expectations.Pending("pod", "a", "90"); again != tc.pending {
				t.Errorf("second call: pending %t, want %t", again, tc.pending)
			}
		})
	}
}

func TestExpectationsSeen(t *testing.T) {
	cases := map[string]struct {
		uid     types.UID
		cached  string
		pending bool
	}{
		"older cache":              {uid: "a", cached: "99", pending: true},
		"cache with the write":     {uid: "a", cached: "100"},
		"cache with a later write": {uid: "a", cached: "1000"},
		"late event of another":    {uid: "b", cached: "1000", pending: true},
		"invalid resource version": {uid: "a", cached: "x", pending: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expectations := &apply.Expectations[string, int]{}
			expectations.Expect("pod", "a", "100", 7)
			expectations.Observe("pod", tc.uid, tc.cached)
			if _, pending := expectations.Pending("pod", "a", "90"); pending != tc.pending {
				t.Errorf("pending %t, want %t", pending, tc.pending)
			}
		})
	}
}
