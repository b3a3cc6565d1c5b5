// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/record/internal/screen"
)

var plain = screen.Style{Foreground: -1, Background: -1}

// frame returns a frame with unstyled rows.
func frame(at time.Duration, lines ...string) screen.Frame {
	f := screen.Frame{At: at}
	for _, line := range lines {
		var row screen.Row
		if line != "" {
			row = screen.Row{{Text: line, Style: plain}}
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

func TestSpans(t *testing.T) {
	a, b, c := markupOf(0, frame(0, "a").Rows[0]), markupOf(0, frame(0, "b").Rows[0]), markupOf(1, frame(0, "c").Rows[0])
	for name, test := range map[string]struct {
		frames []screen.Frame
		want   []span
	}{
		"no frames":                  {nil, nil},
		"blank rows":                 {[]screen.Frame{frame(0, "", "")}, nil},
		"a row that stays":           {[]screen.Frame{frame(0, "a"), frame(1, "a")}, []span{{interval{0, 9}, a}}},
		"a row that changes":         {[]screen.Frame{frame(0, "a"), frame(2, "b")}, []span{{interval{0, 2}, a}, {interval{2, 9}, b}}},
		"a row that is erased":       {[]screen.Frame{frame(0, "a"), frame(2, "")}, []span{{interval{0, 2}, a}}},
		"a row that comes back":      {[]screen.Frame{frame(0, "a"), frame(2, ""), frame(3, "a")}, []span{{interval{0, 2}, a}, {interval{3, 9}, a}}},
		"a row that begins later":    {[]screen.Frame{frame(0, "a", ""), frame(2, "a", "c")}, []span{{interval{0, 9}, a}, {interval{2, 9}, c}}},
		"the times of rows are kept": {[]screen.Frame{frame(1, "a", "c"), frame(2, "b", "c")}, []span{{interval{1, 2}, a}, {interval{1, 9}, c}, {interval{2, 9}, b}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spans(test.frames, 9); !cmp.Equal(got, test.want, cmp.AllowUnexported(span{}, interval{})) {
				t.Errorf("spans %v, want %v", got, test.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]screen.Run{
		"":           nil,
		"   ":        nil,
		"a b":        {{Column: 3, Text: "a b", Style: plain}},
		"a  b":       {{Column: 3, Text: "a", Style: plain}, {Column: 6, Text: "b", Style: plain}},
		" a   b c ":  {{Column: 4, Text: "a", Style: plain}, {Column: 8, Text: "b c", Style: plain}},
		"é→    b  ":  {{Column: 3, Text: "é→", Style: plain}, {Column: 9, Text: "b", Style: plain}},
		"     a":     {{Column: 8, Text: "a", Style: plain}},
		"a     b  c": {{Column: 3, Text: "a", Style: plain}, {Column: 9, Text: "b", Style: plain}, {Column: 12, Text: "c", Style: plain}},
	} {
		if got := words(screen.Run{Column: 3, Text: text, Style: plain}); !cmp.Equal(got, want) {
			t.Errorf("words of %q: %v, want %v", text, got, want)
		}
	}
}

func TestKeyframes(t *testing.T) {
	for name, test := range map[string]struct {
		interval interval
		classes  string
		want     string
	}{
		"always":     {interval{0, 8}, "f z k1", "0%{visibility:visible}to{visibility:visible}"},
		"at first":   {interval{0, 2}, "f k1", "0%{visibility:visible}25%,to{visibility:hidden}"},
		"in between": {interval{1, 2}, "f k1", "0%{visibility:hidden}12.5%{visibility:visible}25%,to{visibility:hidden}"},
		"at the end": {interval{2, 8}, "f z k1", "0%{visibility:hidden}25%{visibility:visible}to{visibility:visible}"},
	} {
		t.Run(name, func(t *testing.T) {
			g := timed{interval: test.interval}
			if want := ".k1{animation-name:k1}@keyframes k1{" + test.want + "}\n"; g.keyframes(1, 8) != want {
				t.Errorf("keyframes %s, want %s", g.keyframes(1, 8), want)
			}
			if got := g.classes(1, 8); got != test.classes {
				t.Errorf("classes %q, want %q", got, test.classes)
			}
		})
	}
}

func TestMarkup(t *testing.T) {
	for name, test := range map[string]struct {
		row  screen.Row
		want string
	}{
		"blank":      {nil, ""},
		"escaped":    {screen.Row{{Column: 0, Text: "<&>", Style: plain}}, `<text x="16" y="49" textLength="25.2">&lt;&amp;&gt;</text>`},
		"color":      {screen.Row{{Column: 2, Text: "ok", Style: screen.Style{Foreground: 2, Background: -1}}}, `<text x="32.8" y="49" textLength="16.8" class="c2">ok</text>`},
		"bold color": {screen.Row{{Column: 0, Text: "a", Style: screen.Style{Foreground: 1, Background: -1, Bold: true}}}, `<text x="16" y="49" textLength="8.4" class="b c1">a</text>`},
		"cube":       {screen.Row{{Column: 0, Text: "a", Style: screen.Style{Foreground: 208, Background: -1}}}, `<text x="16" y="49" textLength="8.4" style="fill:#ff8700">a</text>`},
		"gray":       {screen.Row{{Column: 0, Text: "a", Style: screen.Style{Foreground: 240, Background: -1}}}, `<text x="16" y="49" textLength="8.4" style="fill:#585858">a</text>`},
		"cursor":     {screen.Row{{Column: 0, Text: " ", Style: screen.Style{Foreground: 0, Background: 7}}}, `<rect x="16" y="35" width="8.4" height="19" class="c7"/>`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := markupOf(1, test.row); got != test.want {
				t.Errorf("markup %s, want %s", got, test.want)
			}
		})
	}
}

func TestRenderShowsTheLastFrameWithoutAnimation(t *testing.T) {
	image := Image{Title: "A & B", Description: "d", Columns: 10, Rows: 2, Hold: time.Second}
	got := string(image.Render([]screen.Frame{frame(0, "first", "both"), frame(time.Second, "last", "both")}))
	for _, want := range []string{
		`<title id="t">A &amp; B</title>`, `animation:2s step-end infinite`, `<g class="f k0"><text x="16" y="30" textLength="42">first`,
		`<g class="f z k1"><text x="16" y="49" textLength="33.6">both`, `<g class="f z k2"><text x="16" y="30" textLength="33.6">last`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("image without %s:\n%s", want, got)
		}
	}
}
