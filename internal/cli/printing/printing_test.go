// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/creack/pty"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestColorsNeedATerminal(t *testing.T) {
	terminal, other, err := pty.Open()
	expect.NoError(t, err)
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
			expect.Equal(t, "colors on a terminal", test.want, HasColors(other, getenv))
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
			expect.NoError(t, err)
			expect.Equal(t, "lines", test.want, got)
		})
	}
}

// Lines with colors bypass the writer of Safe.
func TestTablesAreSafe(t *testing.T) {
	result := Result{
		Columns: Table(false, "State", "Message"),
		Rows:    [][]any{{"Failed", texttest.Hostile + texttest.Invalid}, {texttest.Hostile, 1}},
		Colored: "State",
		Color:   func(string) lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Red) },
	}
	colored, err := (&Flags{}).Lines(result, true)
	expect.NoError(t, err)
	texttest.CheckColored(t, strings.Join(colored, "\n"))
	var out bytes.Buffer
	stream, err := (&Flags{}).Stream(Safe(&out))
	expect.NoError(t, errors.Join(err, stream.Print(result), (&Flags{}).Print(Safe(&out), result)))
	texttest.Check(t, out.String())
}

// Programs get the exact text.
func TestStructuredFormatsAreExact(t *testing.T) {
	items := []string{texttest.Hostile}
	result := Result{Object: func() runtime.Object { return NewList("MessageList", items) }}
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(content []byte, into any) error { return yaml.Unmarshal(content, into) },
	} {
		var out bytes.Buffer
		var list struct{ Items []string }
		err := (&Flags{Output: format}).Print(Safe(&out), result)
		if err := errors.Join(err, decode(out.Bytes(), &list)); err != nil || !slices.Equal(list.Items, items) {
			t.Errorf("%s: %q, %v", format, list.Items, err)
		}
	}
	var out bytes.Buffer
	err := (&Flags{Output: "jsonpath={.items[0]}"}).Print(Safe(&out), result)
	if err != nil || out.String() != texttest.Hostile {
		t.Errorf("jsonpath: %q, %v", out.String(), err)
	}
}

func TestSafeWriter(t *testing.T) {
	var out bytes.Buffer
	writer := Safe(&out)
	if n, err := writer.Write([]byte(texttest.Hostile)); n != len(texttest.Hostile) || err != nil {
		t.Errorf("wrote %d bytes of %d: %v", n, len(texttest.Hostile), err)
	}
	texttest.Check(t, out.String())
	if Raw(writer) != io.Writer(&out) || Raw(&out) != io.Writer(&out) {
		t.Error("Raw does not return the writer below")
	}
}
