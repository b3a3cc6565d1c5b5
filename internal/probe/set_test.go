// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probe"
)

// named succeeds with its own name.
type named string

func (n named) Probe(context.Context, probe.Target) (probe.Outcome, error) {
	return probe.Outcome{Success: true, Message: string(n)}, nil
}

func TestSet(t *testing.T) {
	set := probe.Set{probe.HandlerExec: named("exec"), probe.HandlerTCP: named("tcp")}

	got, err := set.Probe(t.Context(), probe.Target{Handler: probe.HandlerTCP})
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	if diff := cmp.Diff(probe.Outcome{Success: true, Message: "tcp"}, got); diff != "" {
		t.Errorf("Probe() (-want +got):\n%s", diff)
	}
	if _, err := set.Probe(t.Context(), probe.Target{Handler: probe.HandlerGRPC}); err == nil || !strings.Contains(err.Error(), "grpc") {
		t.Errorf("error %v, want one that names grpc", err)
	}
}

// faltering gives no answer a number of times before it does. It calls asked at each run.
func faltering(times int, asked func(n int)) prober {
	n := 0
	return func(context.Context, probe.Target) (probe.Outcome, error) {
		n++
		asked(n)
		if n <= times {
			return probe.Outcome{}, fmt.Errorf("no answer to run %d", n)
		}
		return probe.Outcome{Success: true}, nil
	}
}

// prober is a prober made of one function.
type prober func(context.Context, probe.Target) (probe.Outcome, error)

func (p prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	return p(ctx, target)
}

func TestSetAsksAgain(t *testing.T) {
	cases := map[string]struct {
		faltersFor, cancelAt int
		wantRuns             int
		wantErr              string
	}{
		"an answer at once":              {faltersFor: 0, wantRuns: 1},
		"an answer at the second run":    {faltersFor: 1, wantRuns: 2},
		"an answer at the third run":     {faltersFor: 2, wantRuns: 3},
		"no answer in three runs":        {faltersFor: 3, wantRuns: 3, wantErr: "no answer to run 3"},
		"not after the end of a context": {faltersFor: 3, cancelAt: 1, wantRuns: 1, wantErr: "no answer to run 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			runs := 0
			set := probe.Set{probe.HandlerTCP: faltering(tc.faltersFor, func(n int) {
				runs = n
				if n == tc.cancelAt {
					cancel()
				}
			})}
			got, err := set.Probe(ctx, probe.Target{Handler: probe.HandlerTCP})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if runs != tc.wantRuns || said != tc.wantErr || got.Success != (tc.wantErr == "") {
				t.Errorf("%+v, %q after %d runs, want the error %q after %d", got, said, runs, tc.wantErr, tc.wantRuns)
			}
		})
	}
}
