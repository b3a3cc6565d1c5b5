// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the measures of the benchmark: it starts the API server and Seamark's
// programs for them, and reads counters.
//
// Every result with a budget is compared with a floor, which is measured in the same run: only
// their ratio is comparable between machines.
package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// Measure is one experiment.
type Measure struct {
	// Name is unique. It is the name of the subtest, and the page has a block of this name.
	Name string
	// Rows are the names of the results that Run must return, in this order.
	Rows []string
	// Run measures. It may fail the test; the other measures run nevertheless.
	Run func(b *Bench) Output
}

// Check returns an error if the output does not have the declared rows.
func (m Measure) Check(o Output) error {
	var rows []string
	for _, r := range o.Results {
		rows = append(rows, r.Name)
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || math.IsNaN(r.Ratio()) || math.IsInf(r.Ratio(), 0) {
			return fmt.Errorf("%s: result %q has the value %v and the floor %v", m.Name, r.Name, r.Value, r.Floor)
		}
	}
	return await.ErrorIf(!slices.Equal(rows, m.Rows), "%s: has the results %q, want %q", m.Name, rows, m.Rows)
}

// Output is what a measure returns.
type Output struct {
	Results []Result `json:"results"`
	// Notes are facts about the run, such as counts. Each is a sentence in Markdown.
	Notes []string `json:"notes,omitempty"`
	// Charts are curves of values that the results have only one or two points of.
	Charts []Chart `json:"charts,omitempty"`
}

// Chart shows values as lines.
type Chart struct {
	Title string `json:"title"`
	// X is the title of the horizontal axis, such as pods per node. At has its values.
	X  string    `json:"x"`
	At []float64 `json:"at"`
	// Unit is that of the values of all series.
	Unit   string   `json:"unit"`
	Series []Series `json:"series"`
}

// NewChart returns a chart with the titles of its axes and the names of its series, without values.
func NewChart(title, x, unit string, series ...string) Chart {
	c := Chart{Title: title, X: x, Unit: unit}
	for _, name := range series {
		c.Series = append(c.Series, Series{Name: name})
	}
	return c
}

// Add adds the position x with a value of each series.
func (c *Chart) Add(x float64, values ...float64) {
	c.At = append(c.At, x)
	for i := range c.Series {
		c.Series[i].Values = append(c.Series[i].Values, values[i])
	}
}

// Series is a line of a chart: one value for each position on the horizontal axis.
type Series struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
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

// Positive returns the value, or 0.01 if it is less: in a quick run, the difference of two readings that
// is a floor may be 0.
func Positive(value float64) float64 { return max(value, 0.01) }

// Clients is the number of concurrent requests that act as users, kubelets and agents.
const Clients = 16

// Bench is the run of one measure, or of a part of it.
type Bench struct {
	*testing.T
	// Quick selects small sizes and few repetitions. The results are not comparable; they only
	// show that the measure works.
	Quick bool
}

// Pick returns full, or quick in a quick run.
func Pick[T any](b *Bench, full, quick T) T {
	if b.Quick {
		return quick
	}
	return full
}

// Must ends the measure if there is an error.
func (b *Bench) Must(err error) {
	b.Helper()
	expect.NoError(b, err)
}

// Part runs a part of the measure. What it has started is stopped when it returns. The measure ends
// if the part fails.
func (b *Bench) Part(name string, do func(*Bench)) {
	b.Helper()
	if !b.Run(name, func(t *testing.T) { do(&Bench{T: t, Quick: b.Quick}) }) {
		b.FailNow()
	}
}

// Each calls work for 0 to n-1, with limited concurrency, and ends the measure after an error.
func (b *Bench) Each(n, limit int, work func(ctx context.Context, i int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error { return work(ctx, i) })
	}
	b.Must(group.Wait())
}

// Until polls until the condition is true, or 15 minutes have passed, 3 with small sizes: go test would end the run after 10
// without the logs of the programs. The interval is part of the measurement's resolution and load.
func (b *Bench) Until(what string, every time.Duration, done func(context.Context) (bool, error)) {
	b.Helper()
	patience := Pick(b, 15*time.Minute, 3*time.Minute)
	expect.NoErrorf(b, wait.PollUntilContextTimeout(b.Context(), every, patience, true, done), "wait until %s", what)
}

// Idle waits.
func (b *Bench) Idle(period time.Duration) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
	}
}

// Self returns a command that runs this program with the arguments, for what must be measured in a
// process of its own. Its standard error is that of this process.
func (b *Bench) Self(args ...string) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	b.Must(err)
	command := exec.CommandContext(b.Context(), self, args...) //nolint:gosec // It is this program.
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command
}

// Answer runs a command that prints JSON.
func Answer[T any](command *exec.Cmd) (T, error) {
	var value T
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &value)
	}
	return value, err //nolint:wrapcheck // The caller names the command.
}
