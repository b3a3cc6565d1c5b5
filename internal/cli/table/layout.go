// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

const (
	// gap is the space between two columns.
	gap = 2
	// minRestWidth is the minimum width of the last column. Names are cut to make room for it.
	minRestWidth = 28
	// maxStateWidth is the maximum width of a state, such as CrashLoopBackOff.
	maxStateWidth = 16
)

type columnWidths struct{ name, state, count, rest int }

// header returns the titles of the columns.
func header() row {
	return row{name: "POD / PROBE", state: "STATE", count: "STREAK", text: "MARKS / MESSAGE", pod: true}
}

// fitColumns returns the column widths for the rows, within the total width.
func fitColumns(rows []row, width int) columnWidths {
	c := columnWidths{}
	for _, r := range append([]row{header()}, rows...) {
		c.name = max(c.name, ansi.StringWidth(r.name))
		c.state = max(c.state, min(ansi.StringWidth(r.state), maxStateWidth))
		c.count = max(c.count, ansi.StringWidth(r.count))
	}
	fixed := c.state + c.count + 3*gap
	c.name = max(min(c.name, width-fixed-minRestWidth), 8)
	c.rest = max(width-fixed-c.name, 1)
	return c
}

// tableLines returns the header and the rows as lines that fit the width.
func tableLines(rows []row, width int, style styles) []string {
	c := fitColumns(rows, width)
	lines := []string{style.title.Render(c.line(header(), header().text, style))}
	for _, r := range rows {
		rest := []string{r.text}
		if len(r.marks) > 0 {
			rest = wrapMarks(r.marks, c.rest)
		}
		lines = append(lines, c.line(r, rest[0], style))
		for _, more := range rest[1:] {
			lines = append(lines, c.line(row{}, more, style))
		}
	}
	return lines
}

// line returns one line of the table, with rest in the last column.
func (c columnWidths) line(r row, rest string, style styles) string {
	name := cell(r.name, c.name)
	if r.pod {
		name = style.pod.Render(name)
	}
	space := strings.Repeat(" ", gap)
	return strings.TrimRight(name+space+style.states[r.health].Render(cell(r.state, c.state))+space+
		cell(r.count, c.count)+space+ansi.Truncate(rest, c.rest, "…"), " ")
}

// cell truncates or pads a text to the width.
func cell(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// wrapMarks wraps the marks into lines that fit the width. If they need more than one line,
// the keys are shown without their domain.
func wrapMarks(marks []string, width int) []string {
	if whole := strings.Join(marks, " "); ansi.StringWidth(whole) <= width {
		return []string{whole}
	}
	var lines []string
	for _, mark := range marks {
		mark = withoutDomain(mark)
		if last := len(lines) - 1; last >= 0 && ansi.StringWidth(lines[last]+" "+mark) <= width {
			lines[last] += " " + mark
			continue
		}
		lines = append(lines, mark)
	}
	return lines
}

// withoutDomain removes the domain from the key of key=value.
func withoutDomain(mark string) string {
	key, value, _ := strings.Cut(mark, "=")
	if _, name, found := strings.Cut(key, "/"); found {
		key = name
	}
	return key + "=" + value
}

// styles are the styles of the parts of the screen.
type styles struct {
	title, pod, status lipgloss.Style
	states             map[health]lipgloss.Style
}

func newStyles() styles {
	return styles{
		title:  lipgloss.NewStyle().Faint(true),
		pod:    lipgloss.NewStyle().Bold(true),
		status: lipgloss.NewStyle().Reverse(true),
		states: map[health]lipgloss.Style{
			neutral:   lipgloss.NewStyle(),
			healthy:   lipgloss.NewStyle().Foreground(lipgloss.Green),
			unhealthy: lipgloss.NewStyle().Foreground(lipgloss.Red),
			uncertain: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		},
	}
}
