// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"testing"

	"github.com/seamark-dev/seamark/internal/program/text"
)

func TestClosest(t *testing.T) {
	for name, test := range map[string]struct {
		word       string
		candidates []string
		want       string
	}{
		"two letters swapped": {"wroker", []string{"web", "worker", "db"}, "worker"},
		"upper case":          {"Worker", []string{"worker"}, "worker"},
		"equally close":       {"webb", []string{"weba", "webc"}, "weba"},
		"short word":          {"db", []string{"dc"}, "dc"},
		"not similar":         {"worker", []string{"database"}, ""},
		"no candidates":       {"worker", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text.Closest(test.word, test.candidates); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
