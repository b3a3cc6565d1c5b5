// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/process"
)

// watching is a running `seamark get --watch`.
type watching struct {
	command        *exec.Cmd
	stdout, stderr process.Buffer
}

func (w world) watchCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := process.Built("seamark", "test-integration")
	expect.NoError(t, err)
	return exec.CommandContext(t.Context(), program, append([]string{"get", "--kubeconfig=" + w.kubeconfig, "--namespace=" + w.namespace}, args...)...)
}

func (w world) watch(t *testing.T, args ...string) *watching {
	t.Helper()
	running := &watching{command: w.watchCommand(t, args...)}
	running.command.Stdout, running.command.Stderr = &running.stdout, &running.stderr
	expect.NoError(t, running.command.Start())
	return running
}

// interrupt ends the program as Ctrl-C does.
func (r *watching) interrupt(t *testing.T) {
	t.Helper()
	expect.NoError(t, r.command.Process.Signal(syscall.SIGINT))
	if err := r.command.Wait(); err != nil {
		t.Errorf("%v after an interrupt: %s", err, &r.stderr)
	}
}

// report sets the state of game-0 as its agent does.
func (w world) report(t *testing.T, state v1alpha1.ProbeState, message string) {
	t.Helper()
	report := &seamarkv1alpha1.ProbeReport{}
	expect.NoError(t, shared.Client.Get(t.Context(), client.ObjectKey{Name: w.node + ".0"}, report))
	probe := &report.Pods[0].Probes[0]
	probe.State, probe.Message, probe.LastTransitionTime = state, message, metav1.Now().Rfc3339Copy()
	expect.NoError(t, shared.Client.Update(t.Context(), report))
}

// lines returns the output with the pattern of the test's columns.
func (r *watching) lines(w world) []string { return columns(r.stdout.String(), w.node) }

func TestWatch(t *testing.T) {
	w := newWorld(t)
	table := w.watch(t, "-w")
	failed := w.watch(t, "-w", "--state=failed", "-o", "name")
	object := w.watch(t, "game-0", "--watch-only", "-o", "json")
	developer := w.watch(t, "-w", "--as="+developer, "-o", `jsonpath={.pod} {.source} {.removed}{"\n"}`)
	ofNode := w.watch(t, "-w", "--node", w.node, "-l", "app=game", "-m", "game#idle", "-o", `jsonpath={.pod} {.message}{"\n"}`)
	table.stdout.Await(t, "game-1")
	developer.stdout.Await(t, "game-1")
	developer.stderr.Await(t, "Hint: no permission to list probereports.seamark.dev in the cluster")
	ofNode.stdout.Await(t, "game-1")

	w.report(t, v1alpha1.ProbeFailed, "3 players")
	table.stdout.Await(t, "3 players")
	failed.stdout.Await(t, "pod/game-0")
	ofNode.stdout.Await(t, "game-0 3 players")

	stopAPIServer(t)
	table.stderr.Await(t, "is interrupted, trying again: ")
	startAPIServer(t)
	table.stderr.Await(t, "Watching again.")
	w.report(t, v1alpha1.ProbeSucceeded, "empty")
	table.stdout.Await(t, "empty")
	object.stdout.Await(t, `"message": "empty"`)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "game-1"}}
	expect.NoError(t, shared.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	table.stdout.Await(t, "Removed")
	developer.stdout.Await(t, "game-1  true")
	for _, running := range []*watching{table, failed, object, developer, ofNode} {
		running.interrupt(t)
	}
	if got := table.lines(w); len(got) < 6 || !strings.HasPrefix(got[3], "game-0 game#idle main Failed TIME 3 players") {
		t.Errorf("table: %q", got)
	}
	if strings.Contains(object.stdout.String(), "no players") {
		t.Errorf("--watch-only lists the first state: %s", &object.stdout)
	}
}

func stopAPIServer(t *testing.T) {
	t.Helper()
	expect.NoError(t, shared.StopAPIServer())
}

func startAPIServer(t *testing.T) {
	t.Helper()
	expect.NoError(t, shared.StartAPIServer())
}

func TestWatchEnds(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		args   []string
		stderr string
		code   int
	}{
		"at the timeout":     {[]string{"--request-timeout=2s"}, "", exit.OK},
		"without pods":       {[]string{"--request-timeout=2s", "-l", "app=none"}, "No pods found in namespace " + w.namespace + ".", exit.OK},
		"no permission":      {[]string{"--as=nobody"}, "no permission to list podprobemarkers.apps.kruise.io", exit.Access},
		"no API server":      {[]string{"--server=https://127.0.0.1:1"}, "connection refused", exit.Access},
		"too short to start": {[]string{"--request-timeout=1ms"}, "--request-timeout=1ms", exit.Access},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := w.run(t, append([]string{"get", "--watch"}, test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", code, test.code, stderr, test.stderr)
			}
		})
	}
}
