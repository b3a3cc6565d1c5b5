// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text truncates text from containers and runtimes, makes it safe for terminals, and finds
// similar words.
package text

import (
	"strings"
	"unicode/utf8"
)

// Truncate returns the longest prefix of s that has at most limit bytes and ends between
// two runes. It replaces every invalid byte with U+FFFD before it counts, so the result is
// valid UTF-8. The cost depends on limit, not on the length of s.
func Truncate[T string | []byte](s T, limit int) string {
	// A rune that begins within the limit is complete in this prefix.
	prefix := string(s[:min(len(s), max(limit, 0)+utf8.UTFMax)])
	if len(prefix) <= limit && utf8.ValidString(prefix) {
		return prefix
	}
	var out strings.Builder
	for _, r := range prefix { // An invalid byte yields U+FFFD.
		if out.Len()+utf8.RuneLen(r) > limit {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}
