// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hinshun/vt10x"
)

const (
	// cellWidth and cellHeight are the size of a cell, and padding the space around the terminal, in pixels.
	cellWidth, cellHeight = 8.4, 19
	padding               = 16
	// bold is a bit of the mode of a glyph, which vt10x does not export.
	bold = 1 << 2
)

// image is an image of a terminal. CSS animates it, without scripts, links or fonts, so that it works
// in a page.
type image struct {
	// title and description are for screen readers.
	title, description string
	// columns and rows are the size of the terminal in cells.
	columns, rows int
}

// rowsOf returns the markup of what the terminal shows.
func rowsOf(terminal vt10x.Terminal) []string {
	terminal.Lock()
	defer terminal.Unlock()
	columns, count := terminal.Size()
	all := make([]string, count)
	for y := range all {
		var b strings.Builder
		for x := 0; x < columns; {
			style, run := terminal.Cell(x, y), []rune(nil)
			for ; x < columns && sameStyle(terminal.Cell(x, y), style); x++ {
				run = append(run, cmp.Or(terminal.Cell(x, y).Char, ' '))
			}
			if text := strings.TrimRight(string(run), " "); text != "" {
				b.WriteString(markup(x-len(run), y, text, style))
			}
		}
		if cursor := terminal.Cursor(); terminal.CursorVisible() && cursor.Y == y {
			fmt.Fprintf(&b, `<rect x="%g" y="%d" width="%g" height="%d" class="c7"/>`, left(cursor.X), padding+y*cellHeight, cellWidth, cellHeight)
		}
		all[y] = b.String()
	}
	return all
}

func sameStyle(a, b vt10x.Glyph) bool { return a.FG == b.FG && a.Mode&bold == b.Mode&bold }

// markup returns the markup of a text at a column and a row, with the style of a glyph. Its length is
// given: the font of the reader can have other widths.
func markup(x, y int, text string, style vt10x.Glyph) string {
	var classes []string
	if style.Mode&bold != 0 {
		classes = append(classes, "b")
	}
	if style.FG < 16 {
		classes = append(classes, fmt.Sprintf("c%d", style.FG))
	}
	attribute := ""
	if len(classes) > 0 {
		attribute = fmt.Sprintf(` class="%s"`, strings.Join(classes, " "))
	}
	width := math.Round(float64(len([]rune(text)))*cellWidth*10) / 10
	return fmt.Sprintf(`<text x="%g" y="%d" textLength="%g"%s>%s</text>`, left(x), padding+y*cellHeight+14, width, attribute, escape(text))
}

// left returns the position of a column, without the noise of floating-point numbers.
func left(column int) float64 { return math.Round((padding+float64(column)*cellWidth)*10) / 10 }

func escape(text string) string {
	var b strings.Builder
	// A strings.Builder returns no errors.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// render draws the frames. Without animation, such as for a reader who prefers reduced motion, the
// image shows the last frame.
func (i image) render(frames []frame) []byte {
	total := hold
	if len(frames) > 0 {
		total += frames[len(frames)-1].at
	}
	width, height := math.Ceil(float64(i.columns)*cellWidth+2*padding), i.rows*cellHeight+2*padding
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %g %d" width="%g" height="%d" role="img" aria-labelledby="t d">
<title id="t">%s</title>
<desc id="d">%s</desc>
<style>
.w{fill:#12161d;stroke:#4b5563}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;fill:#d5dbe3}
.b{font-weight:700}.f{visibility:hidden}.z{visibility:visible}
`, width, height, width, height, escape(i.title), escape(i.description))
	for n, color := range palette() {
		fmt.Fprintf(&b, ".c%d{fill:%s}", n, color)
	}
	fmt.Fprintf(&b, "\n@media (prefers-reduced-motion:no-preference){\n.f{animation:%gs step-end infinite}\n", total.Round(time.Millisecond).Seconds())
	shown := intervals(frames, total)
	order := slices.SortedFunc(maps.Keys(shown), func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for n, times := range order {
		fmt.Fprintf(&b, ".k%d{animation-name:k%d}@keyframes k%d{%s}\n", n, n, n, times.keyframes(total))
	}
	fmt.Fprintf(&b, "}\n</style>\n"+`<rect class="w" x=".5" y=".5" width="%g" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for n, times := range order {
		atEnd := ""
		if times.to == total {
			atEnd = "z "
		}
		fmt.Fprintf(&b, `<g class="f %sk%d">%s</g>`+"\n", atEnd, n, strings.Join(shown[times], ""))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// palette returns the 16 colors of the terminal. Each has a contrast of at least 4.5 to the background,
// except for black.
func palette() [16]string {
	return [16]string{
		"#12161d", "#ff7b72", "#57c964", "#e0b040", "#79b8ff", "#d2a8ff", "#56d4dd", "#d5dbe3",
		"#8b949e", "#ffa198", "#7ee787", "#f2cc60", "#a5d6ff", "#e2c5ff", "#8ae9f0", "#ffffff",
	}
}

// interval is a time for which something is visible.
type interval struct{ from, to time.Duration }

// intervals returns each distinct content of each row by the interval in which it is visible.
func intervals(frames []frame, total time.Duration) map[interval][]string {
	shown := map[interval][]string{}
	since := map[int]time.Duration{}
	for n, f := range frames {
		until := total
		if n+1 < len(frames) {
			until = frames[n+1].at
		}
		for y, row := range f.rows {
			if n == 0 || frames[n-1].rows[y] != row {
				since[y] = f.at
			}
			if row != "" && (n+1 == len(frames) || frames[n+1].rows[y] != row) {
				times := interval{since[y], until}
				shown[times] = append(shown[times], row)
			}
		}
	}
	return shown
}

// keyframes returns the steps of an animation that shows something in the interval.
func (i interval) keyframes(total time.Duration) string {
	at := func(d time.Duration) string { return fmt.Sprintf("%.4g%%", 100*d.Seconds()/total.Seconds()) }
	steps := at(i.from) + "{visibility:visible}"
	if i.from > 0 {
		steps = "0%{visibility:hidden}" + steps
	}
	if i.to < total {
		return steps + at(i.to) + ",to{visibility:hidden}"
	}
	return steps + "to{visibility:visible}"
}
