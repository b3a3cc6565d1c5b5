// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption describes what the clients of a database and the players of a game notice while it is upgraded, and what happens to
// the label of a primary whose node is lost, as tables and a chart.
package disruption

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/seamark-dev/seamark/test/bench/page"
)

// Run is one upgrade of one program. Times are in seconds.
type Run struct {
	Program string `json:"program"`
	Variant string `json:"variant"`
	// Elections are those that the program counts. Outage is the time without an acknowledged write, and Total that of the upgrade.
	Elections int     `json:"elections"`
	Outage    float64 `json:"outage"`
	Total     float64 `json:"total"`
	// Failed are the writes that were not acknowledged. Lost are those that were, and cannot be read after the upgrade.
	Failed int `json:"failed"`
	Acked  int `json:"acked"`
	Lost   int `json:"lost"`
	// Date is that of the run.
	Date string `json:"date"`
}

// Variants returns how the programs are upgraded: their names, and what a reader must know of them.
func Variants() []string {
	return []string{Plain, Marked, Ordered, Recipe}
}

// The variants. Each has what the one before it has, and more.
const (
	Plain   = "StatefulSet of Kubernetes"
	Marked  = "the same, with a Service by label"
	Ordered = "StatefulSet of Seamark, by role"
	Recipe  = "the recipe, with guard and hand-over"
)

// Outage returns the time without an acknowledged write: of each gap between two times, what is longer than the pace of writes, if the
// gap is at least ten times as long.
func Outage(times []time.Time, pace time.Duration) time.Duration {
	var sum time.Duration
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap >= 10*pace {
			sum += gap - pace
		}
	}
	return sum
}

// Results are the newest measurements.
type Results struct {
	Runs   []Run  `json:"runs"`
	Games  []Game `json:"games"`
	Losses []Loss `json:"losses"`
}

// Load reads results. A missing file has none.
func Load(path string) (Results, error) {
	var r Results
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read results: %w", err)
	}
	return r, nil
}

// Save writes results, a run per line.
func (r Results) Save(path string) error {
	content, err := json.Marshal(r)
	if err == nil {
		content = bytes.ReplaceAll(content, []byte("},{"), []byte("},\n{"))
		err = os.WriteFile(path, append(content, '\n'), 0o644) //nolint:gosec // Results are not secret.
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Add replaces the runs of a program and a variant.
func (r *Results) Add(program, variant string, runs []Run) {
	r.Runs = append(slices.DeleteFunc(r.Runs, func(old Run) bool { return old.Program == program && old.Variant == variant }), runs...)
}

// of returns the runs of a program and a variant.
func of(runs []Run, program, variant string) []Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Program != program || r.Variant != variant })
}

// Programs returns the programs of runs in alphabetical order.
func Programs(runs []Run) []string {
	var names []string
	for _, run := range runs {
		if !slices.Contains(names, run.Program) {
			names = append(names, run.Program)
		}
	}
	slices.Sort(names)
	return names
}

// Table returns a table for a page: the medians of the runs and, after a slash, the highest value.
func Table(runs []Run) string {
	head := []string{
		"program", "upgrade", "runs", "elections", "seconds without a write", "failed writes", "acknowledged writes that are lost", "seconds in total",
	}
	var rows [][]string
	for _, program := range Programs(runs) {
		for _, variant := range Variants() {
			selected := of(runs, program, variant)
			if len(selected) == 0 {
				continue
			}
			lost, acked := 0, 0
			for _, run := range selected {
				lost, acked = lost+run.Lost, acked+run.Acked
			}
			rows = append(rows, []string{
				program, variant, strconv.Itoa(len(selected)),
				spread(selected, func(r Run) float64 { return float64(r.Elections) }),
				spread(selected, func(r Run) float64 { return r.Outage }),
				spread(selected, func(r Run) float64 { return float64(r.Failed) }),
				fmt.Sprintf("%d of %d", lost, acked),
				spread(selected, func(r Run) float64 { return math.Round(r.Total) }),
			})
		}
	}
	return page.Markdown(head, rows)
}

// spread returns the median and the maximum of a value.
func spread[R any](runs []R, value func(R) float64) string {
	median, highest := values(runs, value)
	return number(median) + " / " + number(highest)
}

func values[R any](runs []R, value func(R) float64) (median, highest float64) {
	var all []float64
	for _, run := range runs {
		all = append(all, value(run))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, all[len(all)-1]
}

func number(value float64) string { return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64) }
