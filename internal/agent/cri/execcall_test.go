// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
)

// The code and the message of an error are those of the runtime, whatever bytes the message has.
func TestExecSyncReturnsErrorOfRuntime(t *testing.T) {
	for _, message := range []string{"", "100% of 1+1", "two\nlines", "größer", "%zz %"} {
		runtime := critest.New(t, critest.Streamed)
		runtime.OnExec(func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return nil, status.Error(codes.FailedPrecondition, message)
		})
		client := dial(t, runtime.Socket(), nil)
		_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience)
		var answer interface{ GRPCStatus() *status.Status }
		if !errors.As(err, &answer) || answer.GRPCStatus().Code() != codes.FailedPrecondition || answer.GRPCStatus().Message() != message {
			t.Errorf("ExecSync: %v, want FailedPrecondition %q", err, message)
		}
	}
}

// A call that is open when the runtime is killed ends at once, without a result, and the next
// call reaches the restarted runtime.
func TestExecSyncAcrossRestartOfRuntime(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	started := make(chan struct{}, 1)
	hang := func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client := dial(t, runtime.Socket(), nil)
	for range 3 {
		runtime.OnExec(hang)
		done := make(chan error, 1)
		go func() {
			_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"sleep"}, patience)
			done <- err
		}()
		select {
		case <-started:
		case err := <-done:
			t.Fatalf("ExecSync: %v", err)
		}
		runtime.Stop()
		var unavailable interface{ Unavailable() bool }
		if err := <-done; !errors.As(err, &unavailable) || !unavailable.Unavailable() {
			t.Errorf("ExecSync of the killed runtime: %v, want that the runtime is unavailable", err)
		}
		runtime.OnExec(nil)
		runtime.Start()
		eventually(t, "no reconnection to the restarted runtime", func() bool {
			_, err := client.Version(t.Context())
			return err == nil
		})
		eventually(t, "no call reaches the restarted runtime", func() bool {
			_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience)
			return err == nil
		})
	}
}

// Calls that the runtime never ends do not block others, however many there are.
func TestExecSyncBesidesManyOpenCalls(t *testing.T) {
	const open = 1100 // More than a connection has.
	runtime := critest.New(t, critest.Streamed)
	started := make(chan struct{}, open)
	runtime.OnExec(func(ctx context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		if request.GetContainerId() == "c1" {
			return &runtimeapi.ExecSyncResponse{}, nil
		}
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client := dial(t, runtime.Socket(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, open)
	for range open {
		go func() {
			_, _, _, _ = client.ExecSync(ctx, "c2", []string{"sleep"}, patience)
			ended <- struct{}{}
		}()
		select {
		case <-started:
		case <-time.After(patience):
			t.Fatal("a call does not reach the runtime")
		}
	}
	if _, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, patience); err != nil {
		t.Errorf("ExecSync: %v", err)
	}
	cancel()
	for range open {
		<-ended
	}
}
