// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen replays a recording and returns what the terminal shows over time.
package screen

import (
	"slices"
	"strings"
	"time"

	"github.com/hinshun/vt10x"

	"github.com/seamark-dev/seamark/hack/record/internal/cast"
)

// Style is the appearance of cells.
type Style struct {
	// Foreground and Background are numbers of colors from 0 to 255, or -1 for the default.
	Foreground, Background int
	Bold, Italic           bool
	Underline              bool
}

// Run is a text of one style.
type Run struct {
	// Column is where the text begins, counting from 0.
	Column int
	Text   string
	Style  Style
}

// Row is a line of the terminal, without blank cells at its end.
type Row []Run

// Frame is what the terminal shows from a time on.
type Frame struct {
	At   time.Duration
	Rows []Row
}

// The bits of the mode of a glyph. vt10x does not export them, and has already applied reverse.
const (
	underline = 1 << 1
	bold      = 1 << 2
	italic    = 1 << 4
)

// Frames returns the distinct contents of the terminal. Contents that are shown for less than step
// are left out, and waits are shortened to the limit of the recording.
func Frames(recording *cast.Recording, step time.Duration) []Frame {
	header := recording.Header
	terminal := vt10x.New(vt10x.WithSize(header.Width, header.Height))
	limit := time.Duration(header.IdleTimeLimit * float64(time.Second))
	var frames []Frame
	var now, before time.Duration
	for i, event := range recording.Events {
		now += shorten(event.At-before, limit)
		before = event.At
		// An emulator accepts any bytes.
		_, _ = terminal.Write([]byte(event.Data))
		if i+1 < len(recording.Events) && recording.Events[i+1].At-event.At < step && !due(frames, now, step) {
			continue
		}
		frames = add(frames, Frame{At: now, Rows: rows(terminal)})
	}
	return frames
}

// shorten returns a wait that is at most the limit, if there is one.
func shorten(wait, limit time.Duration) time.Duration {
	if limit > 0 {
		return min(wait, limit)
	}
	return wait
}

// due reports whether the last frame is older than step.
func due(frames []Frame, now, step time.Duration) bool {
	return len(frames) == 0 || now-frames[len(frames)-1].At >= step
}

// add adds a frame, unless it shows the same as the last one.
func add(frames []Frame, frame Frame) []Frame {
	if len(frames) > 0 && slices.EqualFunc(frames[len(frames)-1].Rows, frame.Rows, slices.Equal[Row]) {
		return frames
	}
	return append(frames, frame)
}

// rows returns what the terminal shows.
func rows(terminal vt10x.Terminal) []Row {
	terminal.Lock()
	defer terminal.Unlock()
	columns, count := terminal.Size()
	all := make([]Row, count)
	for y := range all {
		for x := range columns {
			glyph := terminal.Cell(x, y)
			if cursor := terminal.Cursor(); terminal.CursorVisible() && cursor.X == x && cursor.Y == y {
				glyph.FG, glyph.BG = vt10x.DefaultBG, vt10x.DefaultFG
			}
			all[y] = appendGlyph(all[y], x, glyph)
		}
		all[y] = trim(all[y])
	}
	return all
}

// appendGlyph adds a cell to a row.
func appendGlyph(row Row, x int, glyph vt10x.Glyph) Row {
	char := glyph.Char
	if char == 0 {
		char = ' '
	}
	style := styleOf(glyph)
	if last := len(row) - 1; last >= 0 && row[last].Style == style {
		row[last].Text += string(char)
		return row
	}
	return append(row, Run{Column: x, Text: string(char), Style: style})
}

// trim removes blank cells at the end of a row.
func trim(row Row) Row {
	for len(row) > 0 {
		last := &row[len(row)-1]
		if last.Style.Background >= 0 {
			return row
		}
		if last.Text = strings.TrimRight(last.Text, " "); last.Text != "" {
			return row
		}
		row = row[:len(row)-1]
	}
	return row
}

func styleOf(glyph vt10x.Glyph) Style {
	return Style{
		Foreground: colorOf(glyph.FG, 0), Background: colorOf(glyph.BG, 7),
		Bold: glyph.Mode&bold != 0, Italic: glyph.Mode&italic != 0, Underline: glyph.Mode&underline != 0,
	}
}

// colorOf returns the number of a color. In reversed cells, each default is used for the other
// purpose: opposite is the number of the color that then stands for it.
func colorOf(color vt10x.Color, opposite int) int {
	switch {
	case color < 256:
		return int(color)
	case opposite == 0 && color == vt10x.DefaultBG, opposite == 7 && color == vt10x.DefaultFG:
		return opposite
	default:
		return -1
	}
}
