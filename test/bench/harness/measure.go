// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the measures of the benchmark: it starts the API server and Seamark's
// programs for them, reads counters and profiles, and keeps the results.
//
// Every result with a budget is compared with a floor, which is measured in the same run: only
// their ratio is comparable between machines.
package harness

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Measure is one experiment.
type Measure struct {
	// Name is unique. The flag -run matches it, and the page has a block of this name.
	Name string
	// Rows are the names of the results that Run must return, in this order.
	Rows []string
	// Charts are the names of the charts that Run must return, in this order.
	Charts []string
	// Run measures. It may stop early with an error; the other measures run nevertheless.
	Run func(ctx context.Context, r *Run) (Output, error)
}

// Check returns an error if the output does not have the declared rows and charts.
func (m Measure) Check(o Output) error {
	var rows, charts []string
	for _, r := range o.Results {
		rows = append(rows, r.Name)
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || math.IsNaN(r.Ratio()) || math.IsInf(r.Ratio(), 0) {
			return fmt.Errorf("%s: result %q has the value %v and the floor %v", m.Name, r.Name, r.Value, r.Floor)
		}
	}
	for _, c := range o.Charts {
		charts = append(charts, c.Name)
	}
	if !slices.Equal(rows, m.Rows) {
		return fmt.Errorf("%s: has the results %q, want %q", m.Name, rows, m.Rows)
	}
	if !slices.Equal(charts, m.Charts) {
		return fmt.Errorf("%s: has the charts %q, want %q", m.Name, charts, m.Charts)
	}
	return nil
}

// Output is what a measure returns.
type Output struct {
	Results  []Result  `json:"results"`
	Charts   []Chart   `json:"charts,omitempty"`
	Profiles []Profile `json:"profiles,omitempty"`
	// Notes are facts about the run, such as counts. Each is a sentence in Markdown.
	Notes []string `json:"notes,omitempty"`
}

// Result is one measured value.
type Result struct {
	// Name is the text of the row, such as "report write, 110 pods per node".
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit is the unit of Value and Floor, such as ms. It may be empty.
	Unit string `json:"unit,omitempty"`
	// Floor is the value of the lower bound or peer in the same run. 0 means none.
	Floor float64 `json:"floor,omitempty"`
	// FloorName names the lower bound or peer.
	FloorName string `json:"floorName,omitempty"`
	// Budget is nil if the value has none.
	Budget *Budget `json:"budget,omitempty"`
	// Noise is the relative standard error of Value, or the relative half range of repeated
	// runs. 0 means that it does not apply, for example to counts.
	Noise float64 `json:"noise,omitempty"`
	// Note is a short explanation in Markdown, such as the reason of a missed budget.
	Note string `json:"note,omitempty"`
}

// Ratio returns Value divided by Floor, or 0 if there is no floor.
func (r Result) Ratio() float64 {
	if r.FloorName == "" {
		return 0
	}
	return r.Value / r.Floor
}

// Met reports whether the value is within its budget. A value without a budget is.
func (r Result) Met() bool {
	if r.Budget == nil {
		return true
	}
	value := r.Value
	if r.Budget.OfRatio {
		value = r.Ratio()
	}
	if r.Budget.AtLeast {
		return value >= r.Budget.Limit
	}
	return value <= r.Budget.Limit
}

// Budget limits a value, or its ratio to the floor.
type Budget struct {
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	OfRatio bool    `json:"ofRatio,omitempty"`
}

// AtMost is the budget that a value is at most the limit, in the unit of the value.
func AtMost(limit float64) *Budget { return &Budget{Limit: limit} }

// RatioAtMost is the budget that a value is at most so many times its floor.
func RatioAtMost(limit float64) *Budget { return &Budget{Limit: limit, OfRatio: true} }

// RatioAtLeast is the budget that a value is at least so many times its floor.
func RatioAtLeast(limit float64) *Budget { return &Budget{Limit: limit, OfRatio: true, AtLeast: true} }

// Chart is a set of curves. The page has one picture of it for light and one for dark pages.
type Chart struct {
	// Name is part of the file name: docs/images/performance-<name>-light.svg.
	Name string `json:"name"`
	// Title, X and Y are the texts of the picture.
	Title string `json:"title"`
	X     string `json:"x"`
	Y     string `json:"y"`
	// Series are the curves.
	Series []Series `json:"series"`
}

// Series is one curve.
type Series struct {
	Label string `json:"label"`
	// Dashed is for floors and budgets.
	Dashed bool    `json:"dashed,omitempty"`
	Points []Point `json:"points"`
}

// Point is one value of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Percentile returns the value below which the share p of the values is, 0 < p <= 1. There must be
// at least one value.
func Percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// Mean returns the mean of repeated measurements and its relative standard error. Of a single
// value, the error is 0.
func Mean(values []float64) (mean, noise float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) < 2 || mean == 0 {
		return mean, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	return mean, math.Sqrt(squares/(n-1)/n) / math.Abs(mean)
}
