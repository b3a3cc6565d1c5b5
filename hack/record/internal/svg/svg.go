// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package svg draws the contents of a terminal over time as an SVG image that CSS animates. The
// image has no scripts, links or fonts, so that it works as an image in a page.
package svg

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/hack/record/internal/screen"
)

// The size of a cell and of the space around the terminal, in pixels.
const (
	cellWidth, cellHeight = 8.4, 19
	padding               = 16
)

// Image describes an image of a terminal.
type Image struct {
	// Title and Description are for screen readers.
	Title, Description string
	// Columns and Rows are the size of the terminal in cells.
	Columns, Rows int
	// Hold is how long the last frame is shown before the animation begins again.
	Hold time.Duration
}

// Render draws the frames. Without animation, such as for a reader who prefers reduced motion, the
// image shows the last frame.
func (i Image) Render(frames []screen.Frame) []byte {
	total := i.Hold
	if len(frames) > 0 {
		total += frames[len(frames)-1].At
	}
	width := math.Ceil(float64(i.Columns)*cellWidth + 2*padding)
	height := i.Rows*cellHeight + 2*padding
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %d" width="%g" height="%d" role="img" aria-labelledby="t d">
<title id="t">%s</title>
<desc id="d">%s</desc>
`, width, height, width, height, escape(i.Title), escape(i.Description))
	groups := group(spans(frames, total))
	b.WriteString(i.css(groups, total))
	fmt.Fprintf(&b, `<rect class="w" x=".5" y=".5" width="%g" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for n, g := range groups {
		fmt.Fprintf(&b, `<g class="%s">`, g.classes(n, total))
		for _, s := range g.spans {
			b.WriteString(s.markup)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// interval is a time for which something is visible.
type interval struct{ from, to time.Duration }

// span is a row that is visible for an interval.
type span struct {
	interval
	markup string
}

// spans returns each distinct content of each row with the interval in which it is visible.
func spans(frames []screen.Frame, total time.Duration) []span {
	var all []span
	open := map[int]int{}
	for _, frame := range frames {
		for y, row := range frame.Rows {
			markup := markupOf(y, row)
			if n, shown := open[y]; shown {
				if all[n].markup == markup {
					continue
				}
				all[n].to = frame.At
				delete(open, y)
			}
			if markup != "" {
				open[y] = len(all)
				all = append(all, span{interval{frame.At, total}, markup})
			}
		}
	}
	return all
}

// timed holds the rows that are visible for the same interval.
type timed struct {
	interval
	spans []span
}

// group returns the spans by interval.
func group(all []span) []timed {
	byInterval := map[interval][]span{}
	for _, s := range all {
		byInterval[s.interval] = append(byInterval[s.interval], s)
	}
	order := func(a, b interval) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	var groups []timed
	for _, times := range slices.SortedFunc(maps.Keys(byInterval), order) {
		groups = append(groups, timed{times, byInterval[times]})
	}
	return groups
}

// classes returns the classes of group number n. Groups that are visible at the end have "z".
func (t timed) classes(n int, total time.Duration) string {
	if t.to == total {
		return fmt.Sprintf("f z k%d", n)
	}
	return fmt.Sprintf("f k%d", n)
}

// keyframes returns the animation of group number n.
func (t timed) keyframes(n int, total time.Duration) string {
	at := func(d time.Duration) string {
		return fmt.Sprintf("%.4g%%", 100*d.Seconds()/total.Seconds())
	}
	frames := ""
	if t.from > 0 {
		frames = "0%{visibility:hidden}"
	}
	frames += at(t.from) + "{visibility:visible}"
	if t.to < total {
		frames += at(t.to) + ",to{visibility:hidden}"
	} else {
		frames += "to{visibility:visible}"
	}
	return fmt.Sprintf(".k%d{animation-name:k%d}@keyframes k%d{%s}\n", n, n, n, frames)
}

// css returns the style sheet.
func (i Image) css(groups []timed, total time.Duration) string {
	var b strings.Builder
	b.WriteString(`<style>
.w{fill:#12161d;stroke:#4b5563}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;fill:#d5dbe3}
.b{font-weight:700}.i{font-style:italic}.u{text-decoration:underline}
.f{visibility:hidden}.z{visibility:visible}
`)
	for n, color := range palette() {
		fmt.Fprintf(&b, ".c%d{fill:%s}", n, color)
	}
	fmt.Fprintf(&b, "\n@media (prefers-reduced-motion:no-preference){\n.f{animation:%gs step-end infinite}\n", total.Round(time.Millisecond).Seconds())
	for n, g := range groups {
		b.WriteString(g.keyframes(n, total))
	}
	b.WriteString("}\n</style>\n")
	return b.String()
}

// palette returns the 16 colors of the terminal. Each has a contrast of at least 4.5 to the background,
// except for black.
func palette() [16]string {
	return [16]string{
		"#12161d", "#ff7b72", "#57c964", "#e0b040", "#79b8ff", "#d2a8ff", "#56d4dd", "#d5dbe3",
		"#8b949e", "#ffa198", "#7ee787", "#f2cc60", "#a5d6ff", "#e2c5ff", "#8ae9f0", "#ffffff",
	}
}

// markupOf returns the markup of row number y.
func markupOf(y int, row screen.Row) string {
	var b strings.Builder
	for _, run := range row {
		if run.Style.Background >= 0 {
			fmt.Fprintf(&b, `<rect x="%g" y="%d" width="%g" height="%d"%s/>`, left(run.Column), padding+y*cellHeight,
				round(float64(len([]rune(run.Text)))*cellWidth), cellHeight, paint(run.Style.Background, ""))
		}
		for _, word := range words(run) {
			b.WriteString(text(y, word))
		}
	}
	return b.String()
}

// text returns the markup of a text without wide gaps. Its length is given: the font of the reader
// can have other widths.
func text(y int, run screen.Run) string {
	classes := ""
	for _, c := range []struct {
		set  bool
		name string
	}{{run.Style.Bold, " b"}, {run.Style.Italic, " i"}, {run.Style.Underline, " u"}} {
		if c.set {
			classes += c.name
		}
	}
	return fmt.Sprintf(`<text x="%g" y="%d" textLength="%g"%s>%s</text>`, left(run.Column), padding+y*cellHeight+14,
		round(float64(len([]rune(run.Text)))*cellWidth), paint(run.Style.Foreground, classes), escape(run.Text))
}

// words divides a run at gaps of two or more spaces, which XML would reduce to one.
func words(run screen.Run) []screen.Run {
	var all []screen.Run
	column := run.Column
	for part := range strings.SplitSeq(run.Text, "  ") {
		trimmed := strings.TrimLeft(part, " ")
		start := column + len(part) - len(trimmed)
		if trimmed = strings.TrimRight(trimmed, " "); trimmed != "" {
			all = append(all, screen.Run{Column: start, Text: trimmed, Style: run.Style})
		}
		column += len([]rune(part)) + 2
	}
	return all
}

// paint returns the attributes of a color from 0 to 255, or of the default if it is -1, and of more classes.
func paint(color int, classes string) string {
	fill := ""
	switch {
	case color >= 16:
		fill = fmt.Sprintf(` style="fill:%s"`, indexed(color))
	case color >= 0:
		classes += fmt.Sprintf(" c%d", color)
	}
	if classes != "" {
		fill += fmt.Sprintf(` class="%s"`, classes[1:])
	}
	return fill
}

// indexed returns a color from 16 to 255 of xterm: a cube of 6 x 6 x 6, followed by 24 shades of gray.
func indexed(color int) string {
	if color >= 232 {
		gray := 8 + 10*(color-232)
		return fmt.Sprintf("#%02x%02x%02x", gray, gray, gray)
	}
	level := func(n int) int {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	color -= 16
	return fmt.Sprintf("#%02x%02x%02x", level(color/36), level(color/6%6), level(color%6))
}

func left(column int) float64 { return round(padding + float64(column)*cellWidth) }

// round removes the noise of floating-point numbers.
func round(x float64) float64 { return math.Round(x*10) / 10 }

func escape(text string) string {
	var b strings.Builder
	// A strings.Builder returns no errors.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
