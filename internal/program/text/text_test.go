// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMessage(t *testing.T) {
	expect.Equal(t, "Message", "brief\ufffd", text.Message("brief\xff"))
	got := text.Message(strings.Repeat("é", 2000))
	if len(got) > 1000 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é...") {
		t.Errorf("Message returns %d bytes, valid UTF-8: %t", len(got), utf8.ValidString(got))
	}
}

func TestTruncate(t *testing.T) {
	cases := map[string]struct {
		in    string
		limit int
		want  string
	}{
		"empty":                  {"", 3, ""},
		"shorter than the limit": {"aé", 4, "aé"},
		"exactly the limit":      {"aé", 3, "aé"},
		"rune across the limit":  {"aé", 2, "a"},
		"four-byte rune":         {"ab\U0001f600", 5, "ab"},
		"zero limit":             {"a", 0, ""},
		"negative limit":         {"a", -1, ""},
		"invalid UTF-8":          {"a\xff\xfeb", 8, "a\ufffd\ufffdb"},
		"invalid UTF-8 too long": {"a\xff\xfeb", 6, "a\ufffd"},
		"incomplete rune":        {"a\xe2\x82", 9, "a\ufffd\ufffd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, fmt.Sprintf("Truncate(%q, %d)", tc.in, tc.limit), tc.want, text.Truncate(tc.in, tc.limit))
			expect.Equal(t, fmt.Sprintf("Truncate([]byte(%q), %d)", tc.in, tc.limit), tc.want, text.Truncate([]byte(tc.in), tc.limit))
		})
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("idle", 2)
	f.Add("a\xff\xe2\x82", 4)
	f.Add(strings.Repeat("\U0001f600", 3), 9)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 1<<20)
		got := text.Truncate(s, limit)
		valid := string([]rune(s))
		if !utf8.ValidString(got) || len(got) > limit || !strings.HasPrefix(valid, got) {
			t.Fatalf("Truncate(%q, %d) = %q", s, limit, got)
		}
		if next, size := utf8.DecodeRuneInString(valid[len(got):]); size > 0 && len(got)+size <= limit {
			t.Errorf("Truncate(%q, %d) = %q, although %q fits", s, limit, got, next)
		}
	})
}

func TestSafe(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"plain":              {"idle: 12 players\n\tx ~", "idle: 12 players\n\tx ~"},
		"letters and emoji":  {"空闲 é e\u0301 ✔️ 😀 \u00a0 \ufffd", "空闲 é e\u0301 ✔️ 😀 \u00a0 \ufffd"},
		"title":              {"\x1b]0;x\x07", `\x1b]0;x\a`},
		"backspace":          {"ab\b\r\x00\x7f", `ab\b\r\x00\x7f`},
		"C1":                 {"\u009b1A\u0085", `\u009b1A\u0085`},
		"C1 as a byte":       {"\x9b1A", `\x9b1A`},
		"incomplete rune":    {"a\xe2\x80", `a\xe2\x80`},
		"bidirectional":      {"\u202ea\u2066\u200f\u061c", `\u202ea\u2066\u200f\u061c`},
		"no width":           {"\u200b\u200d\u2060\ufeff\u00ad", `\u200b\u200d\u2060\ufeff\u00ad`},
		"letters of no form": {"\u3164\u115f\u034f", `\u3164\u115f\u034f`},
		"tags":               {"\U000e0041", `\U000e0041`},
		"line separator":     {"\u2028", `\u2028`},
	} {
		t.Run(name, func(t *testing.T) {
			got := text.Safe(test.in)
			expect.Equal(t, "got", test.want, got)
			expect.Equal(t, "Safe() of its result", got, text.Safe(got))
		})
	}
	expect.Equal(t, "line", `a b\x1b[2J`, text.Line("a\n\n b\x1b[2J\t"))
	texttest.Check(t, text.Safe(texttest.Hostile))
	texttest.Check(t, text.Safe(texttest.Invalid))
}

func FuzzSafe(f *testing.F) {
	f.Add(texttest.Hostile)
	f.Add(texttest.Invalid)
	f.Fuzz(func(t *testing.T, s string) {
		texttest.Check(t, text.Safe("hostile"+s))
	})
}

func TestClosest(t *testing.T) {
	for name, test := range map[string]struct {
		word       string
		candidates []string
		want       string
	}{
		"two letters swapped": {"wroker", []string{"web", "worker", "db"}, "worker"},
		"upper case":          {"Worker", []string{"worker"}, "worker"},
		"equally close":       {"webb", []string{"weba", "webc"}, "weba"},
		"short word":          {"db", []string{"dc"}, "dc"},
		"not similar":         {"worker", []string{"database"}, ""},
		"no candidates":       {"worker", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "got", test.want, text.Closest(test.word, test.candidates))
		})
	}
}

func TestTypo(t *testing.T) {
	expect.Equal(t, "two letters", "Worker", text.Typo("wroker", []string{"Worker"}))
	expect.Equal(t, "three letters", "", text.Typo("Dplymnt", []string{"Deployment"}))
	expect.Equal(t, "not similar", "", text.Typo("x", nil))
}

func TestList(t *testing.T) {
	names := []string{"a", "b", "c"}
	for limit, want := range map[int]string{1: "a and 2 more", 2: "a, b and 1 more", 3: "a, b, c", 4: "a, b, c"} {
		expect.Equal(t, "list", want, text.List(names, limit))
	}
	expect.Equal(t, "list of no names", "", text.List(nil, 1))
}

func TestSimilar(t *testing.T) {
	names := []string{"status", "state", "undo"}
	for word, want := range map[string]string{
		"stat": `; did you mean "status" or "state"?`, "STATU": `; did you mean "status"?`, "s": "", "udno": `; did you mean "undo"?`, "history": "",
	} {
		expect.Equal(t, "suggestion for "+word, want, text.Suggestion(text.Similar(word, names)...))
	}
	expect.Equal(t, "question without a word", "", text.DidYouMean(""))
}
