// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe returns s in a form that a terminal only shows: it moves no cursor, changes no color, title or
// link, and hides and reorders nothing. Newlines and tabs stay. Control characters, format characters
// such as those of bidirectional text and of zero width, and invalid bytes become escape sequences
// of Go, such as \x1b and \u202e. The result is valid UTF-8, and Safe does not change it again.
func Safe(s string) string {
	if isSafe(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case isSafeRune(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return out.String()
}

// Line returns Safe of s in one line: all white space in a row becomes one blank.
func Line(s string) string { return Safe(strings.Join(strings.Fields(s), " ")) }

func isSafe(s string) bool {
	for i, r := range s {
		if !isSafeRune(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// isSafeRune reports whether a rune has a visible form of its own, or is a blank, a newline or a tab.
// Unicode calls some letters ignorable, which have no width either.
func isSafeRune(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~' || r == '\n' || r == '\t'
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
