// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seamark-dev/seamark/internal/text"
)

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
			if got := text.Truncate(tc.in, tc.limit); got != tc.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
			if got := text.Truncate([]byte(tc.in), tc.limit); got != tc.want {
				t.Errorf("Truncate([]byte(%q), %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
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
