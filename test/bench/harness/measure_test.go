// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"math"
	"strings"
	"testing"
)

func TestMetComparesRatioOrValue(t *testing.T) {
	for name, tc := range map[string]struct {
		result Result
		want   bool
	}{
		"no budget":            {Result{Value: 9}, true},
		"value at the limit":   {Result{Value: 10, Budget: AtMost(10)}, true},
		"value above":          {Result{Value: 10.1, Budget: AtMost(10)}, false},
		"ratio below":          {Result{Value: 29, Floor: 10, FloorName: "floor", Budget: RatioAtMost(3)}, true},
		"ratio above":          {Result{Value: 31, Floor: 10, FloorName: "floor", Budget: RatioAtMost(3)}, false},
		"rate of at least 80%": {Result{Value: 81, Floor: 100, FloorName: "floor", Budget: RatioAtLeast(0.8)}, true},
		"rate too low":         {Result{Value: 79, Floor: 100, FloorName: "floor", Budget: RatioAtLeast(0.8)}, false},
	} {
		if got := tc.result.Met(); got != tc.want {
			t.Errorf("%s: Met() = %v, want %v", name, got, tc.want)
		}
	}
}

func TestCheckNamesMissingRows(t *testing.T) {
	m := Measure{Name: "m", Rows: []string{"a"}}
	o := Output{Results: []Result{{Name: "a"}}}
	if err := m.Check(o); err != nil {
		t.Errorf("complete output: %v", err)
	}
	m.Rows = append(m.Rows, "another")
	if err := m.Check(o); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("error %v, want one that names the missing row", err)
	}
	o.Results[0].Value = math.NaN()
	if err := m.Check(o); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("error %v, want one that names the value", err)
	}
}

func TestPercentileAndMean(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0.01: 1, 0.5: 3, 0.8: 4, 0.99: 5, 1: 5} {
		if got := Percentile(values, p); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
	}
	mean, noise := Mean([]float64{9, 11, 10, 10})
	if mean != 10 || math.Abs(noise-0.0408) > 0.0001 {
		t.Errorf("mean %v, noise %v, want 10 and 0.0408", mean, noise)
	}
	if mean, noise := Mean([]float64{7}); mean != 7 || noise != 0 {
		t.Errorf("one value: mean %v, noise %v, want 7 and 0", mean, noise)
	}
}
