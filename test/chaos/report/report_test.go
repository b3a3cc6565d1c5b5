// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/chaos/report"
	"github.com/seamark-dev/seamark/test/expect"
)

func example() report.Report {
	return report.Report{Turns: []report.Turn{
		{Fault: "killed manager", Wrong: 2 * time.Second, Recovered: 3 * time.Second},
		{Fault: "API server down", Lost: []string{"pod a"}, Recovered: 5 * time.Second},
		{Fault: "killed manager", Wrong: time.Second, Recovered: 4100 * time.Millisecond},
	}}
}

func TestTable(t *testing.T) {
	t.Parallel()
	want := `| fault | injected | lost | wrong for longest | recovered after, p50 | max |
| --- | --- | --- | --- | --- | --- |
| API server down | 1 | 1 | 0.0 s | 5.0 s | 5.0 s |
| killed manager | 2 | 0 | 2.0 s | 3.0 s | 4.1 s |
`
	expect.Equal(t, "table", want, example().Table())
	expect.Equal(t, "lost", []string{"fault 2, API server down: pod a"}, example().Lost())
}

func TestKeep(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "runs.json")
	keep := func(seed uint64, commit string) []report.Run {
		t.Helper()
		runs, err := report.Keep(path, report.Run{Seed: seed, Commit: commit, Took: time.Minute, Report: example()})
		expect.NoError(t, err)
		return runs
	}
	keep(1, "old")
	keep(1, "new")
	keep(2, "new")
	all, took, seeds := report.Merge(keep(1, "new"))
	if len(all.Turns) != 6 || took != 2*time.Minute || !slices.Equal(seeds, []string{"2", "1"}) {
		t.Errorf("%d turns in %s of the seeds %q, want 6 in 2m of 2 and 1", len(all.Turns), took, seeds)
	}
	expect.Equal(t, "turns", example().Turns, all.Turns[:3])
}

func TestFill(t *testing.T) {
	t.Parallel()
	page := []byte("a\n<!-- generated: chaos -->\nold\n<!-- end -->\nb\n<!-- generated: soak -->\nkept\n<!-- end -->\n")
	got, err := report.Fill(page, "chaos", "new\n")
	expect.NoError(t, err)
	want := "a\n<!-- generated: chaos -->\nnew\n<!-- end -->\nb\n<!-- generated: soak -->\nkept\n<!-- end -->\n"
	expect.Equal(t, "page", want, string(got))
	if _, err := report.Fill(page, "other", "new"); err == nil {
		t.Error("no error for a block that the page does not have")
	}
}

func TestSlope(t *testing.T) {
	t.Parallel()
	slope, noise := report.Slope([]float64{0, 1, 2, 3}, []float64{5, 7, 9, 11})
	if math.Abs(slope-2) > 1e-9 || noise > 1e-9 {
		t.Errorf("a line has the slope %v and the noise %v", slope, noise)
	}
	if slope, noise = report.Slope([]float64{0, 1, 2, 3}, []float64{1, -1, -1, 1}); math.Abs(slope) > 1e-9 || math.Abs(noise-1) > 1e-9 {
		t.Errorf("a constant with noise 1 has the slope %v and the noise %v", slope, noise)
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	x := []float64{0, 1, 2, 3, 4, 5}
	tests := map[string]struct {
		y         []float64
		allowance float64
		growth    float64
		tooMuch   bool
	}{
		"constant":              {y: []float64{5, 5, 5, 5, 5, 5}},
		"shrinks":               {y: []float64{9, 8, 7, 6, 5, 4}},
		"grows":                 {y: []float64{1, 2, 3, 4, 5, 6}, growth: 5, tooMuch: true},
		"grows as is allowed":   {y: []float64{1, 2, 3, 4, 5, 6}, allowance: 5, growth: 5},
		"grows less than noise": {y: []float64{10, 0, 10, 0, 10, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			growth, tooMuch := report.Growth(x, test.y, test.allowance)
			if math.Abs(growth-test.growth) > 1e-9 || tooMuch != test.tooMuch {
				t.Errorf("growth %v, too much: %t; want %v, %t", growth, tooMuch, test.growth, test.tooMuch)
			}
		})
	}
}
