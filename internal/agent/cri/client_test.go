// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ exec.Runner = (*Client)(nil)

// patience is the timeout of operations that should complete soon.
const patience = 20 * time.Second

// dial connects to a runtime until the test ends.
func dial(t *testing.T, socket string, observe func(string, time.Duration, error)) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := Dial(ctx, socket, observe)
	expect.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// serveNothing starts a gRPC server without services and returns its socket.
func serveNothing(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "none.sock")
	listener, err := net.Listen("unix", socket)
	expect.NoError(t, err)
	server := grpc.NewServer()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return socket
}

func TestDialErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.sock")
	cases := map[string]struct {
		endpoint string
		want     []string
	}{
		"no socket":   {endpoint: "unix://" + none, want: []string{none, "no such file"}},
		"no CRI":      {endpoint: serveNothing(t), want: []string{"runtime.v1.RuntimeService"}},
		"no endpoint": {endpoint: "", want: []string{"unix:///path"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			client, err := Dial(ctx, tc.endpoint, nil)
			if err == nil {
				_ = client.Close()
				t.Fatal("Dial succeeded")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestDialWaitsForRuntime(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	runtime.Stop()
	done := make(chan error, 1)
	go func() {
		client, err := Dial(t.Context(), runtime.Socket(), nil)
		if err == nil {
			err = client.Close()
		}
		done <- err
	}()
	runtime.Start()
	expect.NoError(t, <-done)
}

func TestClientVersion(t *testing.T) {
	client := dial(t, critest.New(t, critest.Streamed).Socket(), nil)
	got, err := client.Version(t.Context())
	if err != nil || got != (Runtime{"containerd", "v2.2.9"}) {
		t.Errorf("Version() = %q, %v, want containerd v2.2.9", got, err)
	}
	// gRPC may answer the first call just before it reports that the connection is ready.
	if err := client.reach(t.Context()); err != nil || !client.Connected() {
		t.Errorf("not connected: %v", err)
	}
}

type execResult struct {
	Stdout, Stderr string
	ExitCode       int32
}

func TestExecSync(t *testing.T) {
	big := func(b string) string { return b + strings.Repeat(b, 16<<20-1) }
	kept := func(b string) string { return strings.Repeat(b, maxOutputBytes) }
	cases := map[string]struct{ result, want execResult }{
		"success":       {result: execResult{Stdout: "idle\n"}},
		"no output":     {result: execResult{}},
		"failure":       {result: execResult{Stdout: "a", Stderr: "b", ExitCode: 3}},
		"negative code": {result: execResult{ExitCode: -1}},
		"only stderr":   {result: execResult{Stderr: "b"}},
		"invalid UTF-8": {result: execResult{Stdout: "\xff\xfe\x00"}},
		"longest kept":  {result: execResult{Stdout: kept("a"), Stderr: kept("b"), ExitCode: 1}},
		"one byte too long": {
			result: execResult{Stdout: kept("a") + "a", Stderr: "b", ExitCode: 1}, want: execResult{Stdout: kept("a"), Stderr: "b", ExitCode: 1},
		},
		"16 MiB per stream": {
			result: execResult{Stdout: big("a"), Stderr: big("b"), ExitCode: 7}, want: execResult{Stdout: kept("a"), Stderr: kept("b"), ExitCode: 7},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.want == (execResult{}) {
				tc.want = tc.result
			}
			runtime := critest.New(t, critest.Streamed)
			requests := make(chan *runtimeapi.ExecSyncRequest, 1)
			runtime.OnExec(func(_ context.Context, request *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
				requests <- request
				return &runtimeapi.ExecSyncResponse{Stdout: []byte(tc.result.Stdout), Stderr: []byte(tc.result.Stderr), ExitCode: tc.result.ExitCode}, nil
			})
			client := dial(t, runtime.Socket(), nil)
			stdout, stderr, exitCode, err := client.ExecSync(t.Context(), "c1", []string{"a", "b"}, 1500*time.Millisecond)
			expect.NoError(t, err)
			if got := (execResult{string(stdout), string(stderr), exitCode}); got != tc.want {
				t.Errorf("got %d and %d bytes and code %d, want %d, %d and %d",
					len(stdout), len(stderr), exitCode, len(tc.want.Stdout), len(tc.want.Stderr), tc.want.ExitCode)
			}
			request := <-requests
			if diff := cmp.Diff([]string{"a", "b"}, request.GetCmd()); diff != "" || request.GetContainerId() != "c1" || request.GetTimeout() != 2 {
				t.Errorf("executed %v in %s with timeout %d s, want a b in c1 with 2 s", request.GetCmd(), request.GetContainerId(), request.GetTimeout())
			}
		})
	}
}

func TestExecSyncErrors(t *testing.T) {
	fail := func(code codes.Code) critest.ExecFunc {
		return func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			return nil, status.Error(code, "error of the runtime")
		}
	}
	cases := map[string]struct {
		exec     critest.ExecFunc
		deadline time.Duration
		timedOut bool
	}{
		"runtime ended the command": {exec: fail(codes.DeadlineExceeded), timedOut: true},
		"runtime exceeds the timeout": {timedOut: true, deadline: 300 * time.Millisecond, exec: func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
			<-ctx.Done()
			return nil, errors.New("too late")
		}},
		"no such container":         {exec: fail(codes.NotFound)},
		"no such program":           {exec: fail(codes.Unknown)},
		"runtime is unavailable":    {exec: fail(codes.Unavailable)},
		"runtime canceled the call": {exec: fail(codes.Canceled)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, critest.Streamed)
			runtime.OnExec(tc.exec)
			client := dial(t, runtime.Socket(), nil)
			if tc.deadline == 0 {
				tc.deadline = patience
			}
			ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
			defer cancel()
			_, _, _, err := client.ExecSync(ctx, "c1", []string{"true"}, time.Second)
			if err == nil || errors.Is(err, context.DeadlineExceeded) != tc.timedOut {
				t.Errorf("error %v, want a timeout: %t", err, tc.timedOut)
			}
		})
	}
}

// The error of an unreachable runtime is not a timeout of the command.
func TestExecSyncWithUnreachableRuntime(t *testing.T) {
	for name, unresponsive := range map[string]bool{"stopped": false, "unresponsive": true} {
		t.Run(name, func(t *testing.T) {
			runtime := critest.New(t, critest.Streamed)
			client := dial(t, runtime.Socket(), nil)
			runtime.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for state := client.conn.GetState(); state != connectivity.Idle; state = client.conn.GetState() {
				if !client.conn.WaitForStateChange(ctx, state) {
					t.Fatalf("connection is still %s", state)
				}
			}
			want := "connect: no such file"
			if unresponsive {
				want = "container runtime is unreachable"
				listener, err := net.Listen("unix", runtime.Socket())
				expect.NoError(t, err)
				defer func() { _ = listener.Close() }()
			}
			_, _, _, err := client.ExecSync(ctx, "c1", []string{"true"}, patience)
			if err == nil || ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q and no timeout", err, want)
			}
		})
	}
}

// Calls that the client gives up neither end the connection nor block later calls.
func TestExecSyncAfterGivenUpCalls(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	client := dial(t, runtime.Socket(), nil)
	runtime.OnExec(func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if _, _, _, err := client.ExecSync(ctx, "c1", []string{"sleep"}, time.Second); status.Code(err) != codes.Canceled {
			t.Fatalf("ExecSync: %v, want that it was canceled", err)
		}
	}
	client.exec.mu.Lock()
	expect.Equal(t, "connections", 1, len(client.exec.conns))
	client.exec.mu.Unlock()
	runtime.OnExec(nil)
	if _, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, time.Second); err != nil {
		t.Errorf("ExecSync: %v", err)
	}
}

// Close ends the calls.
func TestCloseEndsExecSync(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	started := make(chan struct{})
	runtime.OnExec(func(ctx context.Context, _ *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	client := dial(t, runtime.Socket(), nil)
	done := make(chan error, 1)
	go func() {
		_, _, _, err := client.ExecSync(t.Context(), "c1", []string{"sleep"}, time.Second)
		done <- err
	}()
	<-started
	expect.NoError(t, client.Close())
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ExecSync: %v, want an error that is not a timeout", err)
	}
}

func TestDialObservesCalls(t *testing.T) {
	runtime := critest.New(t, critest.Streamed)
	var mu sync.Mutex
	calls := map[string]int{}
	client := dial(t, runtime.Socket(), func(method string, _ time.Duration, err error) {
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
		mu.Lock()
		defer mu.Unlock()
		calls[method]++
	})
	for range 2 {
		if _, _, _, err := client.ExecSync(t.Context(), "c1", []string{"true"}, time.Second); err != nil {
			t.Fatalf("ExecSync: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"Version": 1, "ExecSync": 2}
	expect.Equal(t, "observed calls", want, calls)
	expect.Equal(t, "calls of the runtime", want, runtime.Calls())
}

func TestRuntimeBroadcasts(t *testing.T) {
	cases := map[Runtime]bool{
		{"containerd", "v2.2.9"}:              true,
		{"containerd", "2.0.0"}:               true,
		{"containerd", "2.0.0+azure"}:         true,
		{"containerd", "v2.2.0-rc.1"}:         true,
		{"containerd", "v2.1.4-k3s1"}:         true,
		{"containerd", "2.0.0~rc.1+ds1-1"}:    true,
		{"containerd", "v10.0.0"}:             true,
		{"containerd", "v1.7.35"}:             false,
		{"containerd", "1.7.24~ds1"}:          false,
		{"containerd", "1.7.27-0ubuntu1.22"}:  false,
		{"containerd", "1.6.20~ds1"}:          false,
		{"containerd", "v1.7.0-beta.4-22-g2"}: false,
		{"containerd", "v1.99.0+2.0.0"}:       false,
		{"containerd", "f2c5d1c9"}:            false,
		{"containerd", "2"}:                   false,
		{"containerd", ""}:                    false,
		{"cri-o", "1.33.1"}:                   true,
		{"cri-o", ""}:                         true,
		{"docker", "28.0.1"}:                  false,
		{"cri-containerd", "2.0.0"}:           false,
		{"", "2.0.0"}:                         false,
	}
	for runtime, want := range cases {
		expect.Equal(t, fmt.Sprintf("%q %q: broadcasts()", runtime.Name, runtime.Version), want, runtime.broadcasts())
	}
}
