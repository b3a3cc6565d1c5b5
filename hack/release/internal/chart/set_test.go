// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	const document = "# comment\nimage:\n  # where\n  registry: a/b\n  tag: \"\"\nlist: [x]\nnoted: a # note\nlast: 1.0"
	for path, test := range map[string]struct{ want, err string }{
		"image.registry": {strings.Replace(document, "a/b", "new", 1), ""},
		"image.tag":      {strings.Replace(document, `""`, "new", 1), ""},
		"last":           {strings.Replace(document, "1.0", "new\n", 1), ""},
		"image.name":     {"", "there is no field image.name"},
		"list.x":         {"", "there is no field list.x"},
		"list":           {"", "the field list is not a plain value: [x]"},
		"noted":          {"", "the field noted is not a plain value: a # note"},
	} {
		got, err := set([]byte(document), path, "new")
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%s: error %v, want %s", path, err, test.err)
			}
		} else if err != nil || string(got) != test.want {
			t.Errorf("%s: error %v, document %s", path, err, got)
		}
	}
}
