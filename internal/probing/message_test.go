// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probing"
)

func TestMessage(t *testing.T) {
	long := strings.Repeat("a", 100<<10)
	cases := map[string]struct {
		parts []string
		want  string
	}{
		"no parts":                 {parts: nil, want: ""},
		"one line":                 {parts: []string{"idle\n"}, want: "idle"},
		"white space around":       {parts: []string{" \t\r\n idle now \u00a0\n"}, want: "idle now"},
		"two streams":              {parts: []string{"out\n", "err\n"}, want: "out\nerr"},
		"only the second":          {parts: []string{" \n", "err"}, want: "err"},
		"inner white space stays":  {parts: []string{"a\n\n  b\n"}, want: "a\n\n  b"},
		"invalid UTF-8":            {parts: []string{"a\xff\xfeb"}, want: "a\ufffd\ufffdb"},
		"incomplete rune at end":   {parts: []string{"a\xe2\x82"}, want: "a\ufffd\ufffd"},
		"exactly the limit":        {parts: []string{long[:1024]}, want: long[:1024]},
		"one byte too long":        {parts: []string{long[:1025]}, want: long[:1024]},
		"100 KiB":                  {parts: []string{long}, want: long[:1024]},
		"rune across the limit":    {parts: []string{long[:1023] + "é"}, want: long[:1023]},
		"rune that just fits":      {parts: []string{long[:1022] + "éx"}, want: long[:1022] + "é"},
		"white space at the limit": {parts: []string{long[:1020] + "      x"}, want: long[:1020]},
		"long first, short second": {parts: []string{long, "boom"}, want: long[:1019] + "\nboom"},
		"short first, long second": {parts: []string{"ok", long}, want: "ok\n" + long[:1021]},
		"both long":                {parts: []string{long, strings.Repeat("b", 2000)}, want: long[:511] + "\n" + strings.Repeat("b", 512)},
		"only invalid UTF-8":       {parts: []string{strings.Repeat("\xff", 2000)}, want: strings.Repeat("\ufffd", 341)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parts := make([][]byte, 0, len(tc.parts))
			for _, part := range tc.parts {
				parts = append(parts, []byte(part))
			}
			got := probe.Message(parts...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Message() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessageOfManyParts(t *testing.T) {
	parts := make([][]byte, 2000)
	for i := range parts {
		parts[i] = []byte("x")
	}
	if got := probe.Message(parts...); len(got) > probe.MaxMessageBytes {
		t.Errorf("Message() has %d bytes, want at most %d", len(got), probe.MaxMessageBytes)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte("idle\n"), []byte(""))
	f.Add([]byte("a\xff\xfe"), []byte("\xe2\x82"))
	f.Add(bytes.Repeat([]byte("é"), 600), bytes.Repeat([]byte(" "), 2000))
	f.Add(bytes.Repeat([]byte("\xf0\x9f\x98\x80"), 300), []byte("boom"))
	f.Add([]byte("\x00\u2028x\u3000"), bytes.Repeat([]byte("b"), 1023))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		got := probe.Message(stdout, stderr)
		if !utf8.ValidString(got) {
			t.Errorf("Message() = %q, invalid UTF-8", got)
		}
		if len(got) > probe.MaxMessageBytes {
			t.Errorf("Message() has %d bytes, want at most %d", len(got), probe.MaxMessageBytes)
		}
		if got != strings.TrimSpace(got) {
			t.Errorf("Message() = %q, surrounded by white space", got)
		}
		if again := probe.Message([]byte(got)); again != got {
			t.Errorf("Message(%q) = %q, want it unchanged", got, again)
		}
		if err := bytes.TrimSpace(stderr); len(err) > 0 && len(err) < 500 && utf8.Valid(err) && !strings.HasSuffix(got, string(err)) {
			t.Errorf("Message() = %q, does not contain stderr %q", got, err)
		}
	})
}
