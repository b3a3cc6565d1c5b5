// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// width is the maximum length of a line of text.
const width = 100

// unbreakable matches a line with a link or a code span that can't be wrapped.
var unbreakable = regexp.MustCompile("^\\s*(?:[-*] +|\\d+\\. +)?(?:\\S+|\\S*`[^`]+`\\S*)$")

// TestLinesWrap checks that the lines of English pages are wrapped, except code, tables,
// comments, and pages that are generated.
func TestLinesWrap(t *testing.T) {
	for _, path := range append(pages(t), otherPages()...) {
		if translated(path) || slices.Contains([]string{"docs/api.md", "docs/metrics.md"}, path) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		must(t, err)
		inside := ""
		for i, line := range strings.Split(string(source), "\n") {
			trimmed := strings.TrimSpace(line)
			switch {
			case inside != "":
				if strings.HasSuffix(trimmed, inside) {
					inside = ""
				}
			case strings.HasPrefix(trimmed, "```"):
				inside = "```"
			case strings.HasPrefix(trimmed, "<!--"):
				if !strings.HasSuffix(trimmed, "-->") {
					inside = "-->"
				}
			case strings.HasPrefix(trimmed, "|"), unbreakable.MatchString(line):
			case utf8.RuneCountInString(line) > width:
				t.Errorf("%s:%d: %d characters, want at most %d", path, i+1, utf8.RuneCountInString(line), width)
			}
		}
	}
}
