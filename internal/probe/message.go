// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Message makes one message of what a probe brought back, such as the two streams of a
// command. Bytes that are no UTF-8 become U+FFFD, white space around each part is
// dropped, and the parts that are left stand on lines of their own. The whole has at
// most MaxMessageBytes and is cut between runes: a part shorter than its fair share
// stays whole, so that a long stdout does not push a short stderr out.
func Message(parts ...[]byte) string {
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		if text := clean(part, MaxMessageBytes); text != "" {
			texts = append(texts, text)
		}
	}
	budget := MaxMessageBytes - max(len(texts)-1, 0)
	for i, share := range shares(texts, budget) {
		texts[i] = clean([]byte(texts[i]), share)
	}
	return clean([]byte(strings.Join(texts, "\n")), MaxMessageBytes)
}

// shares divides the budget between texts: each gets its length or, where that is more
// than an even share of what the shorter ones leave, that share.
func shares(texts []string, budget int) []int {
	byLength := make([]int, len(texts))
	for i := range byLength {
		byLength[i] = i
	}
	slices.SortStableFunc(byLength, func(a, b int) int { return len(texts[a]) - len(texts[b]) })

	out := make([]int, len(texts))
	for done, i := range byLength {
		out[i] = max(min(len(texts[i]), budget/(len(texts)-done)), 0)
		budget -= out[i]
	}
	return out
}

// clean returns the longest valid UTF-8 start of b that fits the limit, without white
// space around it. It reads no more of b than that, however long b is.
func clean(b []byte, limit int) string {
	b = bytes.TrimSpace(b)
	var out strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if out.Len()+utf8.RuneLen(r) > limit {
			break
		}
		out.WriteRune(r)
		b = b[size:]
	}
	return strings.TrimSpace(out.String())
}
