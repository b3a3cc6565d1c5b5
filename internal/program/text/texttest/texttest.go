// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package texttest checks that printers make text of strangers safe for terminals.
package texttest

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Hostile is a message with what a terminal must not get: titles, links, colors, movements of the
// cursor, a bell and backspaces, control characters of 8 bits, bidirectional text, and characters
// without a width. It is valid UTF-8, as messages of the API are, and starts with "hostile".
const Hostile = "hostile \x1b]0;title\x07 \x1b]8;;http://evil\x1b\\link \x1b[2J\x1b[8mhidden\x1b[38;5;0m " +
	"\u009b1A\u0085 12\b\b\r\x7f\x00 \u202eyxorp\u2066 r\u200bo\u200d\u2060\ufeff \u2028\u00ad\u3164\U000e0041 end"

// Invalid is a message with bytes that are not UTF-8: a control character of one byte, and a sequence
// that is not complete.
const Invalid = "hostile \x9b2J \xc2 \xe2\x80"

// colors matches the sequences of Seamark's own colors and styles.
func colors() *regexp.Regexp { return regexp.MustCompile("\x1b\\[(?:[0127]|3[1-6])?m") }

// Check checks that a printer has printed the message, and nothing that is dangerous.
func Check(t testing.TB, output string) {
	t.Helper()
	if !strings.Contains(output, "hostile") {
		t.Errorf("the message is missing in %q", output)
	}
	if !utf8.ValidString(output) {
		t.Errorf("invalid UTF-8 in %q", output)
	}
	for _, r := range output {
		if r != '\n' && r != '\t' && (!unicode.IsGraphic(r) || r == '\u3164') {
			t.Errorf("%U in %q", r, output)
			return
		}
	}
}

// CheckColored is like Check, except that the output has colors of Seamark.
func CheckColored(t testing.TB, output string) {
	t.Helper()
	if !colors().MatchString(output) {
		t.Errorf("no color in %q", output)
	}
	Check(t, colors().ReplaceAllString(output, ""))
}
