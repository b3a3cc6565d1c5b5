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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
)

// storyOf is the expression that docs/logs.md gives to grep with.
func storyOf(pod *corev1.Pod) string {
	return fmt.Sprintf(`pod"?[=:]"?%s/%s("| |$)`, pod.Namespace, pod.Name)
}

// What became of a pod stands in the lines with its name, and in no others.
func TestStoryOfAPod(t *testing.T) {
	namespace, node := shared.Namespace(t), "told"
	makeNode(t, node)
	game, other := makePod(t, namespace, "game", node), makePod(t, namespace, "game-0", node)
	runtime := critest.New(t, critest.Streamed)
	for _, pod := range []*corev1.Pod{game, other} {
		id := runtime.Create(probeid.Container{PodUID: pod.UID, Name: "main"}, 0)
		runtime.Run(id, time.Now())
	}
	var code atomic.Int32
	runtime.OnExec(func(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
		return &runtimeapi.ExecSyncResponse{Stdout: []byte("as told"), ExitCode: code.Load()}, nil
	})
	manager := startManager(t, "probeDefaults: {periodSeconds: 1, failureThreshold: 1}", "-v=4")
	agent := start(t, "seamark-agent", "AgentConfiguration", "criEndpoint: "+runtime.Socket(),
		"--node-name="+node, "--metrics-bind-address=0", "-v=4")

	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ask"}}}
	marker := makeMarker(t, builders.Marker(namespace, "idle").Probe(builders.Probe("p").Handler(exec).
		Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")))
	hasStory(t, agent, game, "Wrote event", 1)
	hasStory(t, manager, game, "Marked pod", 1)
	code.Store(1)
	hasStory(t, agent, game, "Wrote event", 2)
	hasStory(t, manager, game, "Marked pod", 2)
	if err := shared.Client.Delete(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	hasPlan(t, node, 0)
	hasStory(t, manager, game, "Unmarked pod", 1)
	hasStory(t, agent, game, "No longer probing pod", 1)

	told := story(manager, game, "DEBUG v=1")
	// Both follow from the marker's end, in parallel.
	slices.Sort(told[max(0, len(told)-2):])
	compare(t, "writes of the manager", told, []string{
		`Planned pod node=told probes=1`,
		`Marked pod set="[condition game.io/idle label idle]" removed=[]`,
		`Marked pod set="[condition game.io/idle]" removed="[label idle]"`,
		`Unmarked pod set=[] removed="[condition game.io/idle]"`,
		`Unplanned pod node=told`,
	})
	compare(t, "changes of state", story(manager, game, "INFO"), nil)
	compare(t, "changes of state", story(agent, game, "INFO"), []string{
		`Probe changed state node=told marker=NAMESPACE/idle probe=idle#p container=main from=none to=Succeeded message="as told"`,
		`Probe changed state node=told marker=NAMESPACE/idle probe=idle#p container=main from=Succeeded to=Failed message="as told"`,
	})
	compare(t, "writes of the agent", story(agent, game, "DEBUG v=1"), []string{
		`Reported state node=told probe=idle#p state=Succeeded`,
		`Wrote event node=told reason=KruiseProbeSucceeded`,
		`Reported state node=told probe=idle#p state=Failed`,
		`Wrote event node=told reason=KruiseProbeFailed`,
	})
	for _, p := range []*program{manager, agent} {
		for _, line := range p.lines() {
			if regexp.MustCompile(`[^-\w]game[^-\w.]`).MatchString(line) && !regexp.MustCompile(storyOf(game)).MatchString(line) {
				t.Errorf("a line on the pod lacks its name as one value: %s", line)
			}
		}
	}
	if err := client.IgnoreNotFound(shared.Client.Delete(t.Context(), other, client.GracePeriodSeconds(0))); err != nil {
		t.Error(err)
	}
}

// hasStory waits until that many lines on the pod have the message.
func hasStory(t *testing.T, p *program, pod *corev1.Pod, message string, times int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%q is logged %d times", message, times), func(context.Context) (string, error) {
		if got := len(p.logged(`msg="` + message + `".*` + storyOf(pod))); got < times {
			return fmt.Sprintf("%d times", got), nil
		}
		return "", nil
	})
}

// story returns the lines on the pod of a level: their messages and what sets them apart.
func story(p *program, pod *corev1.Pod, level string) []string {
	noise := regexp.MustCompile(`^time=\S+ level=(\w+)( v=\d)? msg=| (logger|controller|reconcileID|pod|podUID)=\S+`)
	var lines []string
	for _, line := range p.logged(storyOf(pod)) {
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
