// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
)

func TestEventText(t *testing.T) {
	cases := map[string]struct {
		message, want string
	}{
		"no message":   {"", "m#p"},
		"message":      {"idle", "m#p: idle"},
		"long message": {strings.Repeat("é", 600), "m#p: " + strings.Repeat("é", 509)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			event := report.Event{Probe: &v1alpha1.ContainerProbe{Name: "m#p"}, Message: tc.message}
			if got := event.Text(); got != tc.want {
				t.Errorf("Text() = %q (%d bytes), want %q (%d bytes)", got, len(got), tc.want, len(tc.want))
			}
		})
	}
}
