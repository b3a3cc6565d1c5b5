// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

func TestMetComparesRatioOrValue(t *testing.T) {
	cases := map[string]struct {
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.result.Met(); got != tc.want {
				t.Errorf("Met() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0.01: 1, 0.5: 3, 0.8: 4, 0.99: 5, 1: 5} {
		if got := Percentile(values, p); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", p, got, want)
		}
	}
	if want := []float64{5, 1, 4, 2, 3}; !slices.Equal(values, want) {
		t.Errorf("the values are now in the order %v, want %v", values, want)
	}
}

func TestMeanReportsStandardError(t *testing.T) {
	mean, noise := Mean([]float64{9, 11, 10, 10})
	if mean != 10 || math.Abs(noise-0.0408) > 0.0001 {
		t.Errorf("mean %v, noise %v, want 10 and 0.0408", mean, noise)
	}
	if mean, noise := Mean([]float64{7}); mean != 7 || noise != 0 {
		t.Errorf("one value: mean %v, noise %v, want 7 and 0", mean, noise)
	}
}

func TestSummarizeAssignsSamplesToFirstCategory(t *testing.T) {
	stack := func(value int64, names ...string) *profile.Sample {
		s := &profile.Sample{Value: []int64{1, value}}
		for _, name := range names {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		return s
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}},
		Sample: []*profile.Sample{
			stack(6e9, "runtime.memmove", "pkg.encode", "pkg.write"),
			stack(3e9, "syscall.write", "pkg.write"),
			stack(1e9, "unknown"),
		},
	}
	got := Summarize("program", p, []Category{
		{Name: "encode", Functions: regexp.MustCompile(`encode`)}, {Name: "write", Functions: regexp.MustCompile(`pkg\.write`)},
	})
	want := Profile{Program: "program", CPU: 10, Parts: []Part{{"encode", 0.6}, {"write", 0.3}, {"other", 0.1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
}

func TestCategoriesCompile(t *testing.T) {
	for _, program := range []string{"API server", "seamark-manager", "seamark-agent"} {
		if len(categoriesOf(program)) < 5 {
			t.Errorf("%s has %d categories, want at least 5", program, len(categoriesOf(program)))
		}
	}
}
