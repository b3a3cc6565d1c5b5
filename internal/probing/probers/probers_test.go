// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probers_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
)

func TestEveryHandlerHasAProber(t *testing.T) {
	want := slices.Sorted(slices.Values(probing.Handlers()))
	got := slices.Sorted(maps.Keys(probers.New(nil, slots.New(1, nil), "test")))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}
