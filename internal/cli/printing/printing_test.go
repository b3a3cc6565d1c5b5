// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"bytes"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

func TestColorsNeedATerminal(t *testing.T) {
	terminal, other, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	defer other.Close()
	for name, test := range map[string]struct {
		environment map[string]string
		want        bool
	}{
		"plain":         {nil, true},
		"NO_COLOR":      {map[string]string{"NO_COLOR": "1"}, false},
		"dumb terminal": {map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := func(key string) string { return test.environment[key] }
			if got := HasColors(other, getenv); got != test.want {
				t.Errorf("colors on a terminal: %t, want %t", got, test.want)
			}
			if HasColors(&bytes.Buffer{}, getenv) {
				t.Error("colors in a buffer")
			}
		})
	}
}

// Only the cells of the column are colored, also if another cell has the same text, and columns
// stay aligned.
func TestColoredColumn(t *testing.T) {
	red := lipgloss.NewStyle().Foreground(lipgloss.Red)
	result := Result{
		Columns: append(Table(false, "Pod", "State", "Message"), Table(true, "Node")...),
		Rows:    [][]any{{"Failed", "Failed", "Failed", "n1"}, {"game-0", "-", "first\nsecond", "n2"}},
		Colored: "State",
		Color:   func(string) lipgloss.Style { return red },
	}
	for name, test := range map[string]struct {
		flags  Flags
		colors bool
		want   []string
	}{
		"colors": {Flags{}, true, []string{
			"POD      STATE    MESSAGE", "Failed   " + red.Render("Failed") + "   Failed", "game-0   " + red.Render("-") + "        first...",
		}},
		"no colors, wide": {Flags{Output: "wide"}, false, []string{
			"POD      STATE    MESSAGE        NODE", "Failed   Failed   Failed         n1", "game-0   -        first...       n2",
		}},
		"no headers": {Flags{NoHeaders: true}, true, []string{
			"Failed   " + red.Render("Failed") + "   Failed", "game-0   " + red.Render("-") + "        first...",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.flags.Lines(result, test.colors)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
