// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/internal/program/health"
	"github.com/seamark-dev/seamark/internal/program/serving"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestResultOf(t *testing.T) {
	cases := map[string]struct {
		run  worker.Run
		want agentmetrics.Result
	}{
		"success": {run: worker.Run{Outcome: probing.Outcome{Success: true}}, want: "success"},
		"failure": {run: worker.Run{}, want: "failure"},
		"timeout": {run: worker.Run{Outcome: probing.Outcome{TimedOut: true}}, want: "timeout"},
		"error":   {run: worker.Run{Err: errors.New("unexpected EOF")}, want: "error"},
		"timeout as error": {
			run: worker.Run{Err: fmt.Errorf("read the body: %w", context.DeadlineExceeded)}, want: "timeout",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "resultOf()", tc.want, resultOf(tc.run))
		})
	}
}

func TestRunningPods(t *testing.T) {
	var running runningContainers
	set := func(uid types.UID, name string, runs bool) {
		running.set(identity.ContainerKey{PodUID: uid, Name: name}, runs)
	}
	set("one", "main", true)
	set("one", "ended", false)
	set("two", "main", true)
	set("two", "main", false)
	expect.Equal(t, "running pods", map[string]bool{"one": true}, running.pods())
}

func TestServer(t *testing.T) {
	registry := prometheus.NewRegistry()
	agentmetrics.New(registry).Changed("Failed")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	ready := map[string]bool{"plan": true, "runtime": false}
	checks := []health.Check{
		health.Until("plan", "not ready", func() bool { return ready["plan"] }),
		health.Until("runtime", "not ready", func() bool { return ready["runtime"] }),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serving.Serve(ctx, listener, handler(registry, checks), serving.Options{}) }()

	get := func(path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		expect.NoError(t, err)
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		expect.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		expect.NoError(t, err)
		return response.StatusCode, string(body)
	}
	answers := func(path string, status int, part string) {
		t.Helper()
		if got, body := get(path); got != status || !strings.Contains(body, part) {
			t.Errorf("GET %s: status %d, body %q, want %d and %q", path, got, body, status, part)
		}
	}
	answers("/healthz", http.StatusOK, "ok")
	answers("/readyz", http.StatusServiceUnavailable, "plan: ok\nruntime: not ready\n")
	ready["runtime"] = true
	answers("/readyz", http.StatusOK, "plan: ok\nruntime: ok\n")
	answers("/metrics", http.StatusOK, `seamark_agent_transitions_total{state="Failed"} 1`)
	answers("/pods", http.StatusNotFound, "")
	cancel()
	expect.NoError(t, <-done)
}
