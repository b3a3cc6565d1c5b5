// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"context"
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
