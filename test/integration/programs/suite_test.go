// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs_test runs the programs of the manager and the agent, with configuration
// files and flags, against a real API server and a container runtime whose containers are
// entries in a map. It checks their logs.
package programs_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/process"
)

// shared is the API server of the package.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared) }

type program struct {
	t   *testing.T
	log string
	cmd *exec.Cmd
}

// start runs a program until the test ends, with the rights that config/rbac grants it.
// configuration is the content of its file without apiVersion and kind.
func start(t *testing.T, name, kind, configuration string, args ...string) *program {
	t.Helper()
	path, err := process.Built(name, "test-integration")
	expect.NoError(t, err)
	config := shared.Component(t, name)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	content := fmt.Sprintf("apiVersion: config.seamark.dev/v1alpha1\nkind: %s\n%s", kind, configuration)
	expect.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	p := &program{t: t, log: filepath.Join(dir, "log")}
	log, err := os.Create(p.log)
	expect.NoError(t, err)
	args = append([]string{"--kubeconfig=" + env.Kubeconfig(t, config), "--config=" + file}, args...)
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	expect.NoError(t, p.cmd.Start())
	_ = log.Close()
	t.Cleanup(p.stop)
	return p
}

// startManager runs a manager without leader election.
func startManager(t *testing.T, configuration string, args ...string) *program {
	t.Helper()
	return start(t, "seamark-manager", "ManagerConfiguration", configuration,
		append([]string{"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)...)
}

// stop interrupts the program and waits for it.
func (p *program) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("run %s: %v", p.cmd.Path, err)
	}
	if p.t.Failed() {
		p.t.Logf("log of %s:\n%s", filepath.Base(p.cmd.Path), strings.Join(p.lines(), "\n"))
	}
}

func (p *program) lines() []string {
	content, err := os.ReadFile(p.log)
	expect.NoError(p.t, err)
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// logged returns the lines that match the expression.
func (p *program) logged(expression string) []string {
	matches := regexp.MustCompile(expression).MatchString
	var found []string
	for _, line := range p.lines() {
		if matches(line) {
			found = append(found, line)
		}
	}
	return found
}

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

// logPattern returns the expression for grep in docs/troubleshooting.md.
func logPattern(pod *corev1.Pod) string {
	return fmt.Sprintf(`pod"?[=:]"?%s/%s("| |$)`, pod.Namespace, pod.Name)
}

// TestLogLinesOfAPod checks that exactly the lines with a pod's name describe what happened to
// it.
func TestLogLinesOfAPod(t *testing.T) {
	namespace, node := shared.Namespace(t), "logged"
	createNode(t, node)
	game, other := createPod(t, namespace, "game", node), createPod(t, namespace, "game-0", node)
	runtime := critest.New(t, critest.Streamed)
	for _, pod := range []*corev1.Pod{game, other} {
		id := runtime.Create(identity.ContainerKey{PodUID: pod.UID, Name: "main"}, 0)
		runtime.Run(id, time.Now())
	}
	var code atomic.Int32
	runtime.OnExec(func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: []byte("is idle"), ExitCode: code.Load()}, nil
	})
	manager := startManager(t, "probeDefaults: {periodSeconds: 1, failureThreshold: 1}", "-v=4")
	agent := start(t, "seamark-agent", "AgentConfiguration", "criEndpoint: "+runtime.Socket(),
		"--node-name="+node, "--metrics-bind-address=0", "-v=4")

	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ask"}}}
	marker := createMarker(t, builders.Marker(namespace, "idle").Probe(builders.Probe("p").Handler(exec).
		Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")))
	logs(t, agent, game, "Wrote event", 1)
	logs(t, manager, game, "Marked pod", 1)
	code.Store(1)
	logs(t, agent, game, "Wrote event", 2)
	logs(t, manager, game, "Marked pod", 2)
	expect.NoError(t, shared.Client.Delete(t.Context(), marker))
	logs(t, manager, game, "Unmarked pod", 1)
	logs(t, manager, game, "Unplanned pod", 1)
	logs(t, agent, game, "Stopped probing pod", 1)

	writes := logLines(manager, game, "DEBUG v=1")
	// Both follow from the deletion of the marker, in parallel.
	slices.Sort(writes[max(0, len(writes)-2):])
	compare(t, "writes of the manager", writes, []string{
		`Planned pod node=logged probes=1`,
		`Marked pod set="[condition game.io/idle label idle]" removed=[]`,
		`Marked pod set="[condition game.io/idle]" removed="[label idle]"`,
		`Unmarked pod set=[] removed="[condition game.io/idle]"`,
		`Unplanned pod node=logged`,
	})
	compare(t, "state changes", logLines(manager, game, "INFO"), nil)
	compare(t, "state changes", logLines(agent, game, "INFO"), []string{
		`Probe changed state node=logged marker=NAMESPACE/idle probe=idle#p container=main from=none to=Succeeded message="is idle"`,
		`Probe changed state node=logged marker=NAMESPACE/idle probe=idle#p container=main from=Succeeded to=Failed message="is idle"`,
	})
	compare(t, "writes of the agent", logLines(agent, game, "DEBUG v=1"), []string{
		`Reported state node=logged probe=idle#p state=Succeeded`,
		`Wrote event node=logged reason=KruiseProbeSucceeded`,
		`Reported state node=logged probe=idle#p state=Failed`,
		`Wrote event node=logged reason=KruiseProbeFailed`,
	})
	for _, p := range []*program{manager, agent} {
		for _, line := range p.lines() {
			if regexp.MustCompile(`[^-\w]game[^-\w.]`).MatchString(line) && !regexp.MustCompile(logPattern(game)).MatchString(line) {
				t.Errorf("a line about the pod does not have its name as one value: %s", line)
			}
		}
	}
	expect.Success(t, client.IgnoreNotFound(shared.Client.Delete(t.Context(), other, client.GracePeriodSeconds(0))))
}

// logs waits until the message is logged that many times for the pod.
func logs(t *testing.T, p *program, pod *corev1.Pod, message string, times int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%q is logged %d times", message, times), func(context.Context) (string, error) {
		if got := len(p.logged(`msg="` + message + `".*` + logPattern(pod))); got < times {
			return fmt.Sprintf("%d times", got), nil
		}
		return "", nil
	})
}

// logLines returns the lines of a level about the pod, without values that differ between runs.
func logLines(p *program, pod *corev1.Pod, level string) []string {
	noise := regexp.MustCompile(`^time=\S+ level=(\w+)( v=\d)? msg=| (logger|controller|reconcileID|pod|podUID)=\S+`)
	var lines []string
	for _, line := range p.logged(logPattern(pod)) {
		if strings.Contains(line, "level="+level+" ") {
			line = strings.ReplaceAll(noise.ReplaceAllString(line, ""), pod.Namespace, "NAMESPACE")
			message, rest, _ := strings.Cut(strings.TrimPrefix(line, `"`), `"`)
			lines = append(lines, message+rest)
		}
	}
	return lines
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	expect.Equal(t, what, want, got)
}
