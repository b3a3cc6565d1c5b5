// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"

	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

func TestResultOf(t *testing.T) {
	cases := map[string]struct {
		run  worker.Run
		want agentmetrics.Result
	}{
		"success": {run: worker.Run{Outcome: probe.Outcome{Success: true}}, want: "success"},
		"failure": {run: worker.Run{}, want: "failure"},
		"timeout": {run: worker.Run{Outcome: probe.Outcome{TimedOut: true}}, want: "timeout"},
		"error":   {run: worker.Run{Err: errors.New("unexpected EOF")}, want: "error"},
		"timeout as error": {
			run: worker.Run{Err: fmt.Errorf("read the body: %w", context.DeadlineExceeded)}, want: "timeout",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(tc.run); got != tc.want {
				t.Errorf("resultOf() = %s, want %s", got, tc.want)
			}
		})
	}
}
