// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"log"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
)

func TestStandard(t *testing.T) {
	for name, tc := range map[string]struct {
		verbosity int32
		want      int
	}{"hidden by default": {verbosity: Writes}, "shortened": {verbosity: Runs, want: maxStandardBytes}} {
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			logger := log.New(Standard(New(&lines, v1alpha1.Logging{Verbosity: tc.verbosity})), "", 0)
			logger.Print(strings.Repeat("x", 4096))
			if got := strings.Count(lines.String(), "x"); got != tc.want {
				t.Errorf("%d bytes are logged, want %d:\n%s", got, tc.want, lines.String())
			}
		})
	}
}
