// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/manifest/files"
)

func TestJoin(t *testing.T) {
	for name, test := range map[string]struct {
		flag, args, want []string
		err              string
	}{
		"both":             {flag: []string{"a.yaml"}, args: []string{"b", "-"}, want: []string{"a.yaml", "b", "-"}},
		"empty":            {args: []string{""}, err: `file name: "" is invalid: must not be empty`},
		"two inputs":       {flag: []string{"-"}, args: []string{"-"}, err: `file name: "-" is given more than once: the standard input can be read only once`},
		"two equal inputs": {args: []string{"-", "a", "-"}, err: `file name: "-" is given more than once: the standard input can be read only once`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := files.Join(test.flag, test.args)
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	names, pods := files.Split([]string{
		"game-0", "marker.yaml", "pod/game.yaml", "./folder", "folder/", "pods/game-1", "-", ".", "game.v2", "a.json", "/tmp/a.yml",
	})
	if diff := cmp.Diff([]string{"marker.yaml", "./folder", "folder/", "-", ".", "a.json", "/tmp/a.yml"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"game-0", "pod/game.yaml", "pods/game-1", "game.v2"}, pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}
