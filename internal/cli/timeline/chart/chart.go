// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart draws timelines of probes: as text for terminals and files, and as SVG. Each phase has
// a color and a form, so that charts can be read without colors.
package chart

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// Timeline is what is drawn.
type Timeline struct {
	// Namespace and Pod identify the pod.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Start and End are the bounds of the time.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Lines are the probes of the pod.
	Lines []history.Line `json:"probes"`
}

// look is how a phase is drawn.
type look struct {
	phase history.Phase
	// block and ascii are the characters of a cell.
	block, ascii string
	// ansi is the color in a terminal, fill that in an SVG. The fills can be distinguished with the
	// common kinds of color blindness.
	ansi, fill string
	// share is the part of the height of a line in an SVG.
	share float64
	text  string
}

func looks() []look {
	return []look{
		{history.Succeeded, "█", "#", "32", "#009e73", 1, "Succeeded"},
		{history.Failed, "▄", "x", "31", "#d55e00", 0.5, "Failed"},
		{history.Unknown, "▒", "?", "33", "#e69f00", 0.75, "Unknown"},
		{history.Error, "!", "!", "35", "#cc79a7", 0.35, "cannot be run"},
		{history.Changing, "▞", "%", "36", "#0072b2", 0.85, "several changes"},
		{history.NotKnown, "·", ".", "2", "#bbbbbb", 0.1, "nothing known"},
	}
}

func lookOf(phase history.Phase) look {
	all := looks()
	for _, l := range all {
		if l.phase == phase {
			return l
		}
	}
	return all[len(all)-1]
}

// Style is how text is printed.
type Style struct {
	// Blocks draws with Unicode characters instead of ASCII.
	Blocks bool
	// Colors uses the colors of a terminal.
	Colors bool
	// Width is the number of columns of the output. The chart has at least 20 and at most 120.
	Width int
}

// names returns the titles of the lines, of at most maxName characters.
func (t Timeline) names() []string {
	var names []string
	for _, l := range t.Lines {
		name := text.Line(l.Marker + "#" + l.Probe)
		if utf8.RuneCountInString(name) > maxName {
			name = string([]rune(name)[:maxName-3]) + "..."
		}
		names = append(names, name)
	}
	return names
}

const (
	minCells, maxCells = 20, 120
	maxName            = 40
)

// Text prints the timeline: one line per probe, a scale, a legend, and the recorded changes.
func (t Timeline) Text(w io.Writer, style Style) error {
	names, width := t.names(), 0
	for _, name := range names {
		width = max(width, utf8.RuneCountInString(name))
	}
	cells := min(max(style.Width-width-2, minCells), maxCells)
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s\n", t.Namespace, t.Pod)
	for i, line := range t.Lines {
		fmt.Fprintf(&out, "%-*s  %s\n", width, names[i], t.cells(line, cells, style))
	}
	fmt.Fprintf(&out, "%-*s  %s\n\n", width, "", t.scale(cells))
	var legend []string
	for _, l := range t.used(cells) {
		legend = append(legend, style.paint(l, 1)+" "+l.text)
	}
	fmt.Fprintf(&out, "%s\n\n", strings.Join(legend, "   "))
	t.changes(&out, width, names)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print the timeline: %w", err)
	}
	return nil
}

func (t Timeline) bounds(cell, cells int) (start, end time.Time) {
	whole := t.End.Sub(t.Start)
	at := func(i int) time.Time { return t.Start.Add(time.Duration(float64(whole) * float64(i) / float64(cells))) }
	return at(cell), at(cell + 1)
}

func (t Timeline) cells(line history.Line, cells int, style Style) string {
	var text strings.Builder
	for i := 0; i < cells; {
		phase, first := line.At(t.bounds(i, cells)), i
		for i < cells && line.At(t.bounds(i, cells)) == phase {
			i++
		}
		text.WriteString(style.paint(lookOf(phase), i-first))
	}
	return text.String()
}

func (s Style) paint(l look, times int) string {
	char := l.ascii
	if s.Blocks {
		char = l.block
	}
	text := strings.Repeat(char, times)
	if s.Colors {
		return "\x1b[" + l.ansi + "m" + text + "\x1b[0m"
	}
	return text
}

// used returns the looks of the phases that the chart has.
func (t Timeline) used(cells int) []look {
	found := map[history.Phase]bool{}
	for _, line := range t.Lines {
		for i := range cells {
			found[line.At(t.bounds(i, cells))] = true
		}
	}
	var used []look
	for _, l := range looks() {
		if found[l.phase] {
			used = append(used, l)
		}
	}
	return used
}

// clock is the format of times.
const clock = "15:04:05"

// scale returns the times of the start and the end below the cells.
func (t Timeline) scale(cells int) string {
	start, end := t.Start.Format(clock), t.End.Format(clock)
	return start + strings.Repeat(" ", max(cells-len(start)-len(end), 1)) + end
}

// maxChanges is the maximum number of recorded changes of a probe that are listed, the latest ones.
const maxChanges = 10

// changes lists the recorded changes of each probe.
func (t Timeline) changes(out *strings.Builder, width int, names []string) {
	for i, line := range t.Lines {
		spans := line.Spans
		if more := len(spans) - maxChanges; more > 0 {
			fmt.Fprintf(out, "%-*s  %d earlier spans are not listed\n", width, names[i], more)
			spans = spans[more:]
		}
		for _, span := range spans {
			fmt.Fprintf(out, "%-*s  %s  %s", width, names[i], span.Start.Format(clock), lookOf(span.Phase).text)
			if span.Message != "" {
				fmt.Fprintf(out, ": %s", text.Line(span.Message))
			}
			out.WriteByte('\n')
		}
		if line.Problem != nil {
			fmt.Fprintf(out, "%-*s  now       %s: %s\n", width, names[i], text.Line(string(line.Problem.Reason)), text.Line(line.Problem.Message))
		}
	}
}
