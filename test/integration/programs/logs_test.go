// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
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
)

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
	expect.Equal(t, want, got, "%s", what)
}
