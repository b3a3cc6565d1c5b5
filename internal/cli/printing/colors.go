// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"io"
	"os"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Style returns the color of a state, a result, a verdict, a severity or a level, in upper or lower case, with blanks around
// it or not. All other words, such as a state that is not known, are faint.
func Style(word string) lipgloss.Style {
	style := lipgloss.NewStyle()
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "succeeded", "ok":
		return style.Foreground(lipgloss.Green)
	case "failed", "problem", "error", "blocks":
		return style.Foreground(lipgloss.Red)
	case "unknown", "warning", "waiting", "changes", "undecided", "notrun":
		return style.Foreground(lipgloss.Yellow)
	case "info":
		return style.Foreground(lipgloss.Cyan)
	default:
		return style.Faint(true)
	}
}

// Painter colors words of a text that is not a Result. Its lines bypass the writer of Safe, so each part of them that is not
// colored must pass text.Safe or text.Line.
type Painter struct{ colors bool }

// NewPainter returns a painter for the output. It colors nothing if HasColors is false.
func NewPainter(out io.Writer) Painter { return Painter{colors: HasColors(out, os.Getenv)} }

// Word returns the word in the color of Style, safe for a terminal.
func (p Painter) Word(word string) string {
	word = text.Safe(word)
	if !p.colors {
		return word
	}
	return Style(word).Render(word)
}
