// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/expect"
)

func example() (harness.Measure, Record) {
	m := harness.Measure{Name: "reports/example", Rows: []string{"latency", "writes"}}
	return m, Record{
		Machine: Machine{CPU: "cpu", Cores: 2, Memory: "24 GiB", Commit: "abc"},
		Output: harness.Output{
			Results: []harness.Result{
				{Name: "latency", Value: 21.234, Unit: "ms", Floor: 7, FloorName: "one write", Budget: harness.RatioAtMost(3), Noise: 0.034},
				{Name: "writes | conflicts", Value: 1, Budget: harness.AtMost(0)},
			},
			Notes: []string{"A note."},
			Charts: []harness.Chart{{
				Title: "Cost", X: "pods", At: []float64{3, 110}, Unit: "ms",
				Series: []harness.Series{{Name: "ours", Values: []float64{1.234, 20}}, {Name: "bare", Values: []float64{1, 2}}},
			}},
		},
	}
}

func TestRenderFillsBlocks(t *testing.T) {
	m, record := example()
	const details = "performance/reports.md"
	pages := Pages{
		Name: []byte("text\n<!-- generated: machine -->\n<!-- end -->\n<!-- generated: summary -->\nold\n<!-- end -->\n"),
		details: []byte(
			"<!-- generated: reports/example -->\nold\n<!-- end -->\n<!-- generated: reports/example/curves -->\nold\n<!-- end -->\n<!-- generated: other -->\nkept\n<!-- end -->\n",
		),
	}
	rendered, err := Render(pages, []harness.Measure{m}, Records{m.Name: record})
	expect.NoError(t, err)
	text := string(rendered[Name]) + string(rendered[details])
	for _, want := range []string{
		"text\n", "| 2 × cpu, 24 GiB | abc |", "kept",
		"| reports/example: latency | 21.2 ms | ± 3.4 % | one write: 7 ms | 3.03 × | at most 3 × | **no** |\n| reports/example: writes \\| conflicts | 1 |  |  |  | at most 0 | **no** |\n\n0 of 2 budgets are met.\n",
		"| writes \\| conflicts | 1 |  |  |  | at most 0 | **no** |",
		"A note.",
		"xychart-beta\n  title \"Cost\"\n  x-axis \"pods\" [3, 110]\n  y-axis \"ms\" 0 --> 22\n  line [1.23, 20]\n  line [1, 2]\n```\n\nBlue: ours; orange: bare.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("page has no %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len(line) > 101 && !strings.HasPrefix(line, "|") {
			t.Errorf("line has more than 100 characters: %s", line)
		}
	}
	if strings.Contains(text, "old") {
		t.Errorf("page has old blocks:\n%s", text)
	}
	again, err := Render(rendered, []harness.Measure{m}, Records{m.Name: record})
	expect.NoError(t, err)
	expect.Equal(t, "the second rendering differs", rendered, again)
	without, err := Render(rendered, []harness.Measure{m}, Records{})
	expect.NoError(t, err)
	expect.Equal(t, "the summary without records of earlier runs differs", summary(rendered), summary(without))
}

// summary returns the summary of the first page.
func summary(pages Pages) string {
	_, text, _ := strings.Cut(string(pages[Name]), "<!-- generated: summary -->")
	return text
}

func TestRenderNamesFailedAndMissingMeasures(t *testing.T) {
	m, record := example()
	failed, missing, other := m, m, m
	failed.Name, missing.Name, other.Name = "reports/failed", "reports/missing", "reports/other"
	records := Records{m.Name: record}
	later := record.Machine
	record.Machine.Date, later.Date = "2026-01-01", "2026-01-02"
	records.Add(m.Name, record.Machine, record.Output, false)
	records.Add(m.Name, later, harness.Output{}, true)
	records.Add(failed.Name, later, harness.Output{}, true)
	records.Add(other.Name, later, harness.Output{}, true)
	records.Add(other.Name, later, record.Output, false)
	measures := []harness.Measure{m, failed, missing, other}
	var text strings.Builder
	for _, name := range []string{"machine", "summary", m.Name, m.Name + "/curves", other.Name + "/curves", failed.Name, missing.Name, other.Name} {
		text.WriteString("<!-- generated: " + name + " -->\n<!-- end -->\n")
	}
	rendered, err := Render(Pages{Name: []byte(text.String())}, measures, records)
	expect.NoError(t, err)
	got := string(rendered[Name])
	for _, want := range []string{
		"abc | 2026-01-01 | `reports/example` |\n", "abc | 2026-01-02 | `reports/other` |\n",
		"\nFailed in the last run: `reports/example`, `reports/failed`.\n", "\nNot measured: `reports/missing`.\n",
		"-->\n**This measure failed on 2026-01-02.** The results are those of 2026-01-01.\n",
		"-->\n**This measure failed on 2026-01-02.**\n<!-- end -->",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("page has no %q:\n%s", want, got)
		}
	}
}

func TestRenderRequiresBlocks(t *testing.T) {
	m, record := example()
	_, err := Render(Pages{Name: []byte("no blocks")}, []harness.Measure{m}, Records{m.Name: record})
	if err == nil || !strings.Contains(err.Error(), "<!-- generated: reports/example -->") {
		t.Errorf("error %v, want one that names the missing block", err)
	}
}

func TestNumber(t *testing.T) {
	for want, value := range map[string]float64{"0": 0, "0.001": 0.001, "1.5": 1.5, "12.3": 12.345, "1235": 1234.6, "110": 110} {
		expect.Equal(t, fmt.Sprintf("number(%v)", value), want, number(value))
	}
}
