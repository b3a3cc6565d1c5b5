// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBelow(t *testing.T) {
	info := `22 1 8:1 / / rw - ext4 /dev/sda rw
40 22 0:40 / /c/nodes/a rw shared:1 - tmpfs tmpfs rw
41 40 0:41 / /c/nodes/a/with\040blank rw - tmpfs tmpfs rw
42 22 0:42 / /c/nodes-other rw - tmpfs tmpfs rw
43 22 0:43 / /c/nodes rw - tmpfs tmpfs rw
44 40 0:44 / /c/nodes/a/b rw - overlay overlay rw
`
	tests := map[string][]string{
		"/c/nodes":   {"/c/nodes/a/b", "/c/nodes/a/with blank", "/c/nodes/a"},
		"/c/nodes/a": {"/c/nodes/a/b", "/c/nodes/a/with blank"},
		"/c/none":    nil,
	}
	for dir, want := range tests {
		if diff := cmp.Diff(want, Below(info, dir)); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
	}
}
