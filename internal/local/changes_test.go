// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"
)

func TestPlainText(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"plain":     {"no such file: [1]", "no such file: [1]"},
		"colors":    {"\x1b[1;31merror\x1b[0m: x", "error: x"},
		"true":      {"\x1b[38;2;1;2;3mred", "red"},
		"title":     {"\x1b]0;title\x07x", "x"},
		"link":      {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"other":     {"\x1b(Bx\x1b7y", "xy"},
		"only code": {"\x1b[0m", ""},
		"long":      {strings.Repeat("x", 5000), strings.Repeat("x", 4096)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plainText(test.line); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
