// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probing"
)

// named succeeds with its own name.
type named string

func (n named) Probe(context.Context, probe.Target) (probe.Outcome, error) {
	return probe.Outcome{Success: true, Message: string(n)}, nil
}

func TestSetUsesProberOfHandler(t *testing.T) {
	set := probe.Set{probe.HandlerExec: named("exec"), probe.HandlerTCP: named("tcp")}

	got, err := set.Probe(t.Context(), probe.Target{Handler: probe.HandlerTCP})
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	if diff := cmp.Diff(probe.Outcome{Success: true, Message: "tcp"}, got); diff != "" {
		t.Errorf("Probe() (-want +got):\n%s", diff)
	}
	if _, err := set.Probe(t.Context(), probe.Target{Handler: probe.HandlerGRPC}); err == nil || !strings.Contains(err.Error(), "grpc") {
		t.Errorf("error = %v, want one that names grpc", err)
	}
}

// failing returns an error from its first runs. It calls began with the number of each run.
func failing(runs int, began func(n int)) proberFunc {
	n := 0
	return func(context.Context, probe.Target) (probe.Outcome, error) {
		n++
		began(n)
		if n <= runs {
			return probe.Outcome{}, fmt.Errorf("no result of run %d", n)
		}
		return probe.Outcome{Success: true}, nil
	}
}

type proberFunc func(context.Context, probe.Target) (probe.Outcome, error)

func (p proberFunc) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	return p(ctx, target)
}

func TestSetRetriesErrors(t *testing.T) {
	cases := map[string]struct {
		failures, cancelAt int
		wantRuns           int
		wantErr            string
	}{
		"result of first run":  {failures: 0, wantRuns: 1},
		"result of second run": {failures: 1, wantRuns: 2},
		"result of third run":  {failures: 2, wantRuns: 3},
		"no result":            {failures: 3, wantRuns: 3, wantErr: "no result of run 3"},
		"context ended":        {failures: 3, cancelAt: 1, wantRuns: 1, wantErr: "no result of run 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			runs := 0
			set := probe.Set{probe.HandlerTCP: failing(tc.failures, func(n int) {
				runs = n
				if n == tc.cancelAt {
					cancel()
				}
			})}
			got, err := set.Probe(ctx, probe.Target{Handler: probe.HandlerTCP})
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if runs != tc.wantRuns || gotErr != tc.wantErr || got.Success != (tc.wantErr == "") {
				t.Errorf("Probe() = %+v, %q after %d runs, want error %q after %d", got, gotErr, runs, tc.wantErr, tc.wantRuns)
			}
		})
	}
}
