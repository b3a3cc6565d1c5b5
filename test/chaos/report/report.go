// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report collects what faults did, and writes it as a table.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Turn is what one fault did.
type Turn struct {
	Fault string `json:"fault"`
	// Lost are marks and pods that were lost, and everything else that is not allowed.
	Lost []string `json:"lost,omitempty"`
	// Wrong is the longest time for which a mark was wrong although its container's state was stable.
	Wrong time.Duration `json:"wrong"`
	// Recovered is the time from the end of the fault until everything was as it should be.
	Recovered time.Duration `json:"recovered"`
}

// Report is the turns of a run, or of several.
type Report struct {
	Turns []Turn `json:"turns"`
}

// Run is a run and where its faults come from.
type Run struct {
	Seed uint64 `json:"seed"`
	// Only is what the names of the faults begin with, empty for all faults.
	Only string        `json:"only,omitempty"`
	Took time.Duration `json:"took"`
	// Commit is that of the programs.
	Commit string `json:"commit"`
	Report
}

// Keep adds a run to those in a file. Runs of other commits, and of the same seed and faults, are dropped. It returns
// all that are in the file now.
func Keep(path string, run Run) ([]Run, error) {
	var runs []Run
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	runs = append(slices.DeleteFunc(runs, func(r Run) bool { return r.Commit != run.Commit || r.Seed == run.Seed && r.Only == run.Only }), run)
	if text, err = json.MarshalIndent(runs, "", "  "); err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644) //nolint:gosec // Results are not secret.
	}
	if err != nil {
		return nil, fmt.Errorf("keep runs: %w", err)
	}
	return runs, nil
}

// Merge returns the turns of all runs, their time and their seeds, each once.
func Merge(runs []Run) (all Report, took time.Duration, seeds []string) {
	for _, run := range runs {
		all.Turns = append(all.Turns, run.Turns...)
		took += run.Took
		if seed := strconv.FormatUint(run.Seed, 10); !slices.Contains(seeds, seed) {
			seeds = append(seeds, seed)
		}
	}
	return all, took, seeds
}

// Table returns the table of the run in Markdown, with a row for each fault, ordered by name.
func (r Report) Table() string {
	out := "| fault | injected | lost | wrong for longest | recovered after, p50 | max |\n| --- | --- | --- | --- | --- | --- |\n"
	var names []string
	turns := map[string][]Turn{}
	for _, turn := range r.Turns {
		if turns[turn.Fault] == nil {
			names = append(names, turn.Fault)
		}
		turns[turn.Fault] = append(turns[turn.Fault], turn)
	}
	slices.Sort(names)
	for _, fault := range names {
		lost, wrong := 0, time.Duration(0)
		var recovered []time.Duration
		for _, turn := range turns[fault] {
			lost += len(turn.Lost)
			wrong = max(wrong, turn.Wrong)
			recovered = append(recovered, turn.Recovered)
		}
		slices.Sort(recovered)
		median := recovered[(len(recovered)-1)/2]
		out += fmt.Sprintf("| %s | %d | %d | %s | %s | %s |\n", fault, len(recovered), lost, text(wrong), text(median), text(recovered[len(recovered)-1]))
	}
	return out
}

// text returns a duration in seconds.
func text(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Lost returns everything that was lost, with its fault.
func (r Report) Lost() []string {
	var all []string
	for i, turn := range r.Turns {
		for _, lost := range turn.Lost {
			all = append(all, fmt.Sprintf("fault %d, %s: %s", i+1, turn.Fault, lost))
		}
	}
	return all
}

var errNoBlock = errors.New("the page has no such block")

// Fill replaces the content of a generated block of a page.
func Fill(page []byte, block, content string) ([]byte, error) {
	name := regexp.QuoteMeta(block)
	pattern := regexp.MustCompile(`(?s)(<!-- generated: ` + name + ` -->\n).*?(<!-- end -->)`)
	if !pattern.Match(page) {
		return nil, fmt.Errorf("<!-- generated: %s -->: %w", block, errNoBlock)
	}
	return pattern.ReplaceAllFunc(page, func(old []byte) []byte {
		parts := pattern.FindSubmatch(old)
		return slices.Concat(parts[1], []byte(strings.TrimSpace(content)+"\n"), parts[2])
	}), nil
}

// Slope returns the growth of values per unit of x, by least squares, and the standard deviation of the values
// around the line. There must be at least two values of x.
func Slope(x, y []float64) (slope, noise float64) {
	n := float64(len(x))
	var sumX, sumY, sumXX, sumXY float64
	for i := range x {
		sumX += x[i]
		sumY += y[i]
		sumXX += x[i] * x[i]
		sumXY += x[i] * y[i]
	}
	slope = (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	start := (sumY - slope*sumX) / n
	squares := 0.0
	for i := range x {
		squares += (y[i] - start - slope*x[i]) * (y[i] - start - slope*x[i])
	}
	return slope, math.Sqrt(squares / n)
}

// Growth returns how much the values grow over their range of x, 0 if they shrink, and whether that is more than their
// noise allows: twice the standard deviation around the line, and an allowance in addition.
func Growth(x, y []float64, allowance float64) (growth float64, tooMuch bool) {
	slope, noise := Slope(x, y)
	growth = max(0, slope*(x[len(x)-1]-x[0]))
	return growth, growth > 2*noise+allowance
}
