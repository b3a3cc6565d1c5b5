// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"bytes"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Message joins the parts of a probe's output, such as stdout and stderr, into a message
// of at most MaxMessageBytes. It trims white space around each part, omits empty parts,
// joins the rest with newlines, and replaces invalid UTF-8 with U+FFFD. If the parts are
// too long, Message truncates only those that exceed an even share, so that a long stdout
// does not displace a short stderr.
func Message(parts ...[]byte) string {
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		if cleaned := clean(part, MaxMessageBytes); cleaned != "" {
			texts = append(texts, cleaned)
		}
	}
	budget := MaxMessageBytes - max(len(texts)-1, 0)
	for i, share := range shares(texts, budget) {
		texts[i] = clean([]byte(texts[i]), share)
	}
	return clean([]byte(strings.Join(texts, "\n")), MaxMessageBytes)
}

// shares divides the budget between texts. Each gets its length, but at most an even share
// of what the shorter texts leave.
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

// clean truncates b and trims the white space around it.
func clean(b []byte, limit int) string {
	return strings.TrimSpace(text.Truncate(bytes.TrimSpace(b), limit))
}
