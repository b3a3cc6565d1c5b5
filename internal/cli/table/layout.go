// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

const (
	// gap is between two columns.
	gap = 2
	// leastRest is the least width of the last column, for which the names are cut.
	leastRest = 28
	// mostState is the most that a state takes, such as CrashLoopBackOff.
	mostState = 16
)

// columns are the widths of a table's columns.
type columns struct{ name, state, count, rest int }

// header are the titles of the columns.
func header() row {
	return row{name: "POD / PROBE", state: "STATE", count: "STREAK", text: "MARKS / MESSAGE", pod: true}
}

// fit returns the widths that the rows need, within the whole width.
func fit(rows []row, width int) columns {
	c := columns{}
	for _, r := range append([]row{header()}, rows...) {
		c.name = max(c.name, ansi.StringWidth(r.name))
		c.state = max(c.state, min(ansi.StringWidth(r.state), mostState))
		c.count = max(c.count, ansi.StringWidth(r.count))
	}
	fixed := c.state + c.count + 3*gap
	c.name = max(min(c.name, width-fixed-leastRest), 8)
	c.rest = max(width-fixed-c.name, 1)
	return c
}

// tableLines returns the rows as lines of the width, after a header.
func tableLines(rows []row, width int, paint painter) []string {
	c := fit(rows, width)
	lines := []string{paint.title.Render(c.line(header(), header().text, paint))}
	for _, r := range rows {
		rest := []string{r.text}
		if len(r.marks) > 0 {
			rest = wrap(r.marks, c.rest)
		}
		lines = append(lines, c.line(r, rest[0], paint))
		for _, more := range rest[1:] {
			lines = append(lines, c.line(row{}, more, paint))
		}
	}
	return lines
}

// line returns one line of the table, with rest in its last column.
func (c columns) line(r row, rest string, paint painter) string {
	name := cell(r.name, c.name)
	if r.pod {
		name = paint.pod.Render(name)
	}
	space := strings.Repeat(" ", gap)
	return strings.TrimRight(name+space+paint.of(r.mood).Render(cell(r.state, c.state))+space+
		cell(r.count, c.count)+space+ansi.Truncate(rest, c.rest, "…"), " ")
}

// cell cuts or fills up a text to the width.
func cell(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// wrap puts the marks on as few lines of the width as it can. Where they do not fit on
// one, keys are shown without their domain.
func wrap(marks []string, width int) []string {
	if whole := strings.Join(marks, " "); ansi.StringWidth(whole) <= width {
		return []string{whole}
	}
	var lines []string
	for _, mark := range marks {
		mark = short(mark)
		if last := len(lines) - 1; last >= 0 && ansi.StringWidth(lines[last]+" "+mark) <= width {
			lines[last] += " " + mark
			continue
		}
		lines = append(lines, mark)
	}
	return lines
}

// short takes the domain off the key of key=value.
func short(mark string) string {
	key, value, _ := strings.Cut(mark, "=")
	if _, name, found := strings.Cut(key, "/"); found {
		key = name
	}
	return key + "=" + value
}

// painter has the styles of the parts.
type painter struct {
	title, pod, faint, status lipgloss.Style
	moods                     map[mood]lipgloss.Style
}

func newPainter() painter {
	return painter{
		title:  lipgloss.NewStyle().Faint(true),
		pod:    lipgloss.NewStyle().Bold(true),
		faint:  lipgloss.NewStyle().Faint(true),
		status: lipgloss.NewStyle().Reverse(true),
		moods: map[mood]lipgloss.Style{
			good:   lipgloss.NewStyle().Foreground(lipgloss.Green),
			bad:    lipgloss.NewStyle().Foreground(lipgloss.Red),
			unsure: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
		},
	}
}

func (p painter) of(m mood) lipgloss.Style {
	if style, ok := p.moods[m]; ok {
		return style
	}
	return lipgloss.NewStyle()
}
