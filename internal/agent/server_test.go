// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
)

func TestServer(t *testing.T) {
	registry := prometheus.NewRegistry()
	agentmetrics.New(registry).Changed("Failed")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]bool{"plan": true, "runtime": false}
	checks := []check{
		{name: "plan", ready: func() bool { return ready["plan"] }},
		{name: "runtime", ready: func() bool { return ready["runtime"] }},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, handler(registry, checks)) }()

	get := func(path string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	expect := func(path string, status int, part string) {
		t.Helper()
		if got, body := get(path); got != status || !strings.Contains(body, part) {
			t.Errorf("GET %s: status %d, body %q, want %d and %q", path, got, body, status, part)
		}
	}
	expect("/healthz", http.StatusOK, "ok")
	expect("/readyz", http.StatusServiceUnavailable, "plan: ok\nruntime: not ready\n")
	ready["runtime"] = true
	expect("/readyz", http.StatusOK, "plan: ok\nruntime: ok\n")
	expect("/metrics", http.StatusOK, `seamark_agent_transitions_total{state="Failed"} 1`)
	expect("/pods", http.StatusNotFound, "")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}
