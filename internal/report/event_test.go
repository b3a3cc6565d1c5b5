// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/report"
)

func TestEventText(t *testing.T) {
	cases := map[string]struct {
		message, want string
	}{
		"the probe alone":             {"", "m#p"},
		"what the probe said":         {"idle", "m#p: idle"},
		"no more than an event takes": {strings.Repeat("é", 600), "m#p: " + strings.Repeat("é", 509)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			event := report.Event{Probe: &v1alpha1.ContainerProbe{Name: "m#p"}, Message: tc.message}
			if got := event.Text(); got != tc.want {
				t.Errorf("%d bytes %q, want %d bytes %q", len(got), got, len(tc.want), tc.want)
			}
		})
	}
}
