// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probers_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestEveryHandlerHasAProber(t *testing.T) {
	want := slices.Sorted(slices.Values(probing.Handlers()))
	got := slices.Sorted(maps.Keys(probers.New(nil, slots.New(1, nil), "test")))
	expect.Equal(t, "handlers", want, got)
}
