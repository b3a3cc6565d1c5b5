// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// hostile opens connections that send the text, until the test ends. The server may close them.
func hostile(t *testing.T, address, text string, connections int) {
	t.Helper()
	for range connections {
		conn, err := net.Dial("tcp", address)
		expect.NoErrorf(t, err, "connect to %s", address)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte(text))
	}
}

// maxMemory is far above what the programs need without a plan, and far below the limit of the agent.
const maxMemory = 128 << 10

// TestHostileConnections checks that the programs answer the kubelet and Prometheus next to connections that are
// idle or whose headers or bodies do not end, on each of their servers, and what that costs them.
func TestHostileConnections(t *testing.T) {
	health, metrics, agent := env.FreeAddress(t), env.FreeAddress(t), env.FreeAddress(t)
	manager := startManager(t, "", "--metrics-bind-address="+metrics, "--health-probe-bind-address="+health)
	node := start(t, "seamark-agent", "AgentConfiguration", "criEndpoint: "+critest.New(t, critest.Streamed).Socket(),
		"--node-name=attacked", "--metrics-bind-address="+agent)
	for _, server := range []struct{ address, path string }{{health, "/healthz"}, {metrics, "/metrics"}, {agent, "/healthz"}, {agent, "/metrics"}} {
		answers := func(ctx context.Context) (string, error) {
			if answer := env.Get(ctx, server.address, server.path); !strings.HasPrefix(answer, "200") {
				return "answer: " + answer, nil
			}
			return "", nil
		}
		await.Until(t, server.address+" serves "+server.path, answers)
		for _, text := range []string{"", "GET / HTTP/1.1\r\nA: " + strings.Repeat("a", 1<<20), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n"} {
			hostile(t, server.address, text, 150)
			if reason, _ := answers(t.Context()); reason != "" {
				t.Errorf("%s at %s next to connections that send %.20q: %s", server.path, server.address, text, reason)
			}
		}
	}
	for _, p := range []*program{manager, node} {
		if used := p.maxMemory(); used > maxMemory {
			t.Errorf("%s used %d KiB, want at most %d", filepath.Base(p.cmd.Path), used, maxMemory)
		}
	}
}

// maxMemory returns the most memory (RSS) that the program has used, in KiB.
func (p *program) maxMemory() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	expect.NoError(p.t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var used int
	if _, err := fmt.Sscan(rest, &used); err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("%s used %d KiB", filepath.Base(p.cmd.Path), used)
	return used
}
