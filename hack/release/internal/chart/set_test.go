// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetAll(t *testing.T) {
	const document = "# comment\nimage:\n  # where\n  registry: a/b\n  tag: \"\"\nlist: [x]\nnoted: a # note\nlast: 1.0"
	for name, test := range map[string]struct {
		path []string
		want string
		err  string
	}{
		"plain":          {[]string{"image", "registry"}, strings.Replace(document, "a/b", "new", 1), ""},
		"quoted":         {[]string{"image", "tag"}, strings.Replace(document, `""`, "new", 1), ""},
		"last line":      {[]string{"last"}, strings.Replace(document, "1.0", "new\n", 1), ""},
		"missing":        {[]string{"image", "name"}, "", "set image.name: there is no field name"},
		"not a mapping":  {[]string{"list", "x"}, "", "set list.x: there is no field x"},
		"not a scalar":   {[]string{"list"}, "", "set list: line 6 is not a plain value: [x]"},
		"with a comment": {[]string{"noted"}, "", "set noted: line 7 is not a plain value: a # note"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := setAll([]byte(document), []setting{{test.path, "new"}})
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
