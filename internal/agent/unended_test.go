// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/exec"
)

// TestRuntimeThatNeverEndsRuns has a runtime that ignores both the timeout and the cancellation
// of a call. It gets one call, however often the probe is due, until it ends the run.
func TestRuntimeThatNeverEndsRuns(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	end := make(chan struct{})
	runtime.OnExec(func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		<-end
		return &runtimeapi.ExecSyncResponse{}, nil
	})
	client, err := cri.Dial(t.Context(), runtime.Socket(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	prober := exec.New(client, 1, nil)
	defer prober.Close()
	target := probe.Target{
		Handler: probe.HandlerExec, Timeout: 100 * time.Millisecond, ContainerID: "c1", Exec: &probe.Exec{Command: []string{"/idle"}},
	}
	for due := range 10 {
		outcome, err := prober.Probe(t.Context(), target)
		if err != nil || !outcome.TimedOut || outcome.NotEnded != (due > 0) {
			t.Fatalf("run %d: %+v, %v, want a timeout", due, outcome, err)
		}
	}
	if calls := runtime.Calls()["ExecSync"]; calls != 1 || prober.Unended() != 1 {
		t.Errorf("%d calls of the runtime and %d unended runs, want 1 and 1", calls, prober.Unended())
	}
	close(end)
	for prober.Unended() > 0 {
		<-time.After(time.Millisecond)
	}
	if outcome, err := prober.Probe(t.Context(), target); err != nil || !outcome.Success {
		t.Errorf("run after the runtime has ended the first: %+v, %v, want a success", outcome, err)
	}
}
