// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestExclusiveValuesAreOfOneState(t *testing.T) {
	probe := func() *builders.ProbeBuilder {
		return builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").Annotation(v1alpha1.ProbeSucceeded, "a", "b").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})
	}
	for name, tc := range map[string]struct {
		probe   *builders.ProbeBuilder
		refused bool
	}{
		"other value": {probe: probe().Label(v1alpha1.ProbeFailed, "role", "replica")},
		"same label":  {probe: probe().Label(v1alpha1.ProbeFailed, "role", "primary"), refused: true},
		"label of the group": {probe: probe().Label(v1alpha1.ProbeUnknown, "shard", "none").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"}), refused: true},
		"same annotation": {probe: probe().Annotation(v1alpha1.ProbeUnknown, "a", "b"), refused: true},
	} {
		compiled, err := plan.Compile(builders.Marker("ns", "db").Probe(tc.probe).Build())
		if (errors.Is(err, plan.ErrExclusiveValue) || errors.Is(err, plan.ErrGroupLabel)) != tc.refused || err == nil && len(compiled.Exclusives()) != 1 {
			t.Errorf("%s: error %v, want one: %t", name, err, tc.refused)
		}
	}
}
