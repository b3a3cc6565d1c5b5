// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/record/internal/cast"
)

// text returns the rows of a frame without styles.
func text(frame Frame) string {
	var lines []string
	for _, row := range frame.Rows {
		line := ""
		for _, run := range row {
			line += strings.Repeat(" ", run.Column-len(line)) + run.Text
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("%v %s", frame.At, strings.TrimRight(strings.Join(lines, "|"), "|"))
}

func TestFrames(t *testing.T) {
	const hide = "\x1b[?25l"
	type event struct {
		at   time.Duration
		data string
	}
	for name, test := range map[string]struct {
		events []event
		want   []string
	}{
		"nothing":              {nil, nil},
		"text is added":        {[]event{{0, hide + "a"}, {time.Second, "b"}}, []string{"0s a", "1s ab"}},
		"a line is replaced":   {[]event{{0, hide + "abc"}, {time.Second, "\r\x1b[Kd"}}, []string{"0s abc", "1s d"}},
		"the same is left out": {[]event{{0, hide + "a"}, {time.Second, "\ra"}}, []string{"0s a"}},
		"short times are left out": {
			[]event{{0, hide + "a"}, {10 * time.Millisecond, "b"}, {20 * time.Millisecond, "c"}, {time.Second, "d"}},
			[]string{"0s a", "20ms abc", "1s abcd"},
		},
		"a steady output has steps": {
			[]event{{0, hide + "a"}, {60 * time.Millisecond, "b"}, {120 * time.Millisecond, "c"}, {180 * time.Millisecond, "d"}},
			[]string{"0s a", "120ms abc", "180ms abcd"},
		},
		"waits are shortened": {[]event{{0, hide + "a"}, {time.Minute, "b"}, {time.Minute + time.Second, "c"}}, []string{"0s a", "2s ab", "3s abc"}},
		"rows scroll":         {[]event{{0, hide + "a\r\nb\r\nc"}, {time.Second, "\r\nd"}}, []string{"0s a|b|c", "1s b|c|d"}},
	} {
		t.Run(name, func(t *testing.T) {
			recording := &cast.Recording{Header: cast.Header{Version: 2, Width: 10, Height: 3, IdleTimeLimit: 2}}
			for _, e := range test.events {
				recording.Add(e.at, e.data)
			}
			var got []string
			for _, frame := range Frames(recording, 100*time.Millisecond) {
				got = append(got, text(frame))
			}
			if !cmp.Equal(got, test.want) {
				t.Errorf("frames %q, want %q", got, test.want)
			}
		})
	}
}

func TestStyles(t *testing.T) {
	plain := Style{Foreground: -1, Background: -1}
	for name, test := range map[string]struct {
		data string
		want Row
	}{
		"default":      {"a  b  ", Row{{0, "a  b", plain}}},
		"color":        {"a \x1b[31mb\x1b[0m", Row{{0, "a ", plain}, {2, "b", Style{Foreground: 1, Background: -1}}}},
		"bright color": {"\x1b[90ma", Row{{0, "a", Style{Foreground: 8, Background: -1}}}},
		"256 colors":   {"\x1b[38;5;208ma", Row{{0, "a", Style{Foreground: 208, Background: -1}}}},
		"bold":         {"\x1b[1ma", Row{{0, "a", Style{Foreground: -1, Background: -1, Bold: true}}}},
		"italic":       {"\x1b[3ma", Row{{0, "a", Style{Foreground: -1, Background: -1, Italic: true}}}},
		"underline":    {"\x1b[4ma", Row{{0, "a", Style{Foreground: -1, Background: -1, Underline: true}}}},
		"reverse":      {"\x1b[7ma ", Row{{0, "a ", Style{Foreground: 0, Background: 7}}}},
		"cursor":       {"a\x1b[?25h", Row{{0, "a", plain}, {1, " ", Style{Foreground: 0, Background: 7}}}},
	} {
		t.Run(name, func(t *testing.T) {
			recording := &cast.Recording{Header: cast.Header{Version: 2, Width: 10, Height: 1}}
			recording.Add(0, "\x1b[?25l"+test.data)
			if got := Frames(recording, time.Second)[0].Rows[0]; !cmp.Equal(got, test.want) {
				t.Errorf("row %+v, want %+v", got, test.want)
			}
		})
	}
}
