// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRuntimesOfNodes(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  []Runtime
	}{
		"one":              {names: []string{"debian"}, want: []Runtime{RuntimeDebian, RuntimeDebian, RuntimeDebian}},
		"fewer than nodes": {names: []string{"debian", "containerd-1.7"}, want: []Runtime{RuntimeDebian, RuntimeContainerd17, RuntimeDebian}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runtimes, err := ParseRuntimes(tc.names)
			if err != nil {
				t.Fatal(err)
			}
			var got []Runtime
			for i := range tc.want {
				got = append(got, runtimes.Of(i))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("runtimes (-want +got):\n%s", diff)
			}
		})
	}
	runtimes := Runtimes{RuntimeDebian, RuntimeContainerd17}
	if runtimes.Among(1, RuntimeContainerd17) || !runtimes.Among(2, RuntimeContainerd17) {
		t.Error("the runtime of the second node is among the first nodes only if there are two")
	}
}
