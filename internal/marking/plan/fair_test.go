// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"testing"
)

func TestFairShare(t *testing.T) {
	cases := map[string]struct {
		demands map[string]int
		budget  int
		want    int
	}{
		"no demands":             {budget: 10, want: math.MaxInt},
		"everything fits":        {demands: map[string]int{"a": 4, "b": 6}, budget: 10, want: math.MaxInt},
		"equal demands":          {demands: map[string]int{"a": 6, "b": 6}, budget: 10, want: 5},
		"small demand is met":    {demands: map[string]int{"a": 1, "b": 20, "c": 20}, budget: 10, want: 4},
		"two small demands":      {demands: map[string]int{"a": 1, "b": 3, "c": 20}, budget: 10, want: 6},
		"demand equals share":    {demands: map[string]int{"a": 5, "b": 20}, budget: 10, want: 5},
		"less than one for each": {demands: map[string]int{"a": 1, "b": 1, "c": 1}, budget: 2, want: 0},
		"no budget":              {demands: map[string]int{"a": 1}, want: 0},
		"negative budget":        {demands: map[string]int{"a": 1, "b": 0}, budget: -5, want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fairShare(tc.demands, tc.budget); got != tc.want {
				t.Errorf("fairShare(%v, %d) = %d, want %d", tc.demands, tc.budget, got, tc.want)
			}
		})
	}
}
