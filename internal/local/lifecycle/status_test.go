// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/expect"
)

// also adds a container.
func also(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name}) }
}

// probed gives the last container a readiness probe.
func probed(p *corev1.Pod) {
	p.Spec.Containers[len(p.Spec.Containers)-1].ReadinessProbe = &corev1.Probe{}
}

func ready(name string) step {
	return func(s *scenario) { s.machine.ReadinessChanged(name, s.machine.Container(name).ID, true) }
}

// format returns a status in lines: the phase, the containers, and the conditions that are
// not True or have a reason.
func format(status corev1.PodStatus) []string {
	lines := []string{string(status.Phase)}
	for _, c := range append(status.InitContainerStatuses, status.ContainerStatuses...) {
		state := "?"
		switch {
		case c.State.Running != nil:
			state = "Running"
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			state = fmt.Sprintf("%s %d", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
		}
		line := fmt.Sprintf("%s: %s started=%t ready=%t restarts=%d", c.Name, state, *c.Started, c.Ready, c.RestartCount)
		if last := c.LastTerminationState.Terminated; last != nil {
			line += fmt.Sprintf(" last=%d", last.ExitCode)
		}
		lines = append(lines, line)
	}
	for _, c := range status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Reason != "" {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)))
		}
	}
	return lines
}

func TestStatus(t *testing.T) {
	notReady := func(names string) []string {
		reason := "=False ContainersNotReady containers with unready status: " + names
		return []string{"Ready" + reason, "ContainersReady" + reason}
	}
	failed := []string{"Ready=False PodFailed", "ContainersReady=False PodFailed"}
	const running = "main: Running started=true ready=true restarts=0"
	for name, test := range map[string]struct {
		edits []func(*corev1.Pod)
		steps []step
		want  []string
		// conditions are those that are not True or have a reason.
		conditions []string
	}{
		"not started": {
			want:       []string{"Pending", "main: ContainerCreating started=false ready=false restarts=0"},
			conditions: notReady("[main]"),
		},
		"running and ready": {steps: []step{advance}, want: []string{"Running", running}},
		"one of two containers ready": {
			edits: []func(*corev1.Pod){also("b"), probed}, steps: []step{advance},
			want:       []string{"Running", running, "b: Running started=true ready=false restarts=0"},
			conditions: notReady("[b]"),
		},
		"readiness probe succeeded": {
			edits: []func(*corev1.Pod){probed}, steps: []step{advance, ready("main")},
			want: []string{"Running", running},
		},
		"postStart hook runs after restart": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PostStart: execHook()})}, steps: []step{advance, hook("main", nil), exit("main", 1)},
			want:       []string{"Running", "main: ContainerCreating started=false ready=false restarts=1 last=1"},
			conditions: notReady("[main]"),
		},
		"crash loop": {
			steps:      []step{advance, exit("main", 1), exit("main", 2)},
			want:       []string{"Running", "main: CrashLoopBackOff started=false ready=false restarts=1 last=2"},
			conditions: notReady("[main]"),
		},
		"succeeded": {
			edits: []func(*corev1.Pod){never, also("b")}, steps: []step{advance, exit("main", 0), exit("b", 0)},
			want: []string{
				"Succeeded", "main: Completed 0 started=false ready=false restarts=0", "b: Completed 0 started=false ready=false restarts=0",
			},
			conditions: []string{"Initialized=True PodCompleted", "Ready=False PodCompleted", "ContainersReady=False PodCompleted"},
		},
		"one failed, one running": {
			edits: []func(*corev1.Pod){never, also("b")}, steps: []step{advance, exit("b", 1)},
			want:       []string{"Running", running, "b: Error 1 started=false ready=false restarts=0"},
			conditions: notReady("[b]"),
		},
		"failed": {
			edits: []func(*corev1.Pod){never, also("b")}, steps: []step{advance, exit("main", 1), exit("b", 0)},
			want: []string{
				"Failed", "main: Error 1 started=false ready=false restarts=0", "b: Completed 0 started=false ready=false restarts=0",
			},
			conditions: failed,
		},
		"init container running": {
			edits: []func(*corev1.Pod){inits("i", "side")}, steps: []step{advance},
			want: []string{
				"Pending", "i: Running started=true ready=false restarts=0",
				"side: PodInitializing started=false ready=false restarts=0", "main: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [i side]",
			},
			conditions: notReady("[side main]"),
		},
		"sidecar not started": {
			edits: []func(*corev1.Pod){inits("i", "side")}, steps: []step{advance, exit("i", 0)},
			want: []string{
				"Pending", "i: Completed 0 started=false ready=true restarts=0",
				"side: Running started=false ready=false restarts=0", "main: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [side]",
			},
			conditions: notReady("[side main]"),
		},
		"sidecar restarting": {
			edits: []func(*corev1.Pod){inits("side")}, steps: []step{advance, startup("side"), exit("side", 1)},
			want:       []string{"Running", "side: Running started=false ready=false restarts=1 last=1", running},
			conditions: notReady("[side]"),
		},
		"init container failed": {
			edits: []func(*corev1.Pod){never, inits("i")}, steps: []step{advance, exit("i", 1)},
			want: []string{
				"Failed", "i: Error 1 started=false ready=false restarts=0", "main: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [i]",
			},
			conditions: failed,
		},
		"being stopped": {steps: []step{advance, stop}, want: []string{"Running", running}},
		"stopped": {
			steps:      []step{advance, stop, exit("main", 143)},
			want:       []string{"Failed", "main: Error 143 started=false ready=false restarts=0"},
			conditions: failed,
		},
		"no condition of a readiness gate": {
			edits: []func(*corev1.Pod){gate()}, steps: []step{advance}, want: []string{"Running", running},
			conditions: []string{`Ready=False ReadinessGatesNotReady corresponding condition of pod readiness gate "game.io/idle" does not exist.`},
		},
		"readiness gate not true": {
			edits: []func(*corev1.Pod){gate(corev1.ConditionUnknown)}, steps: []step{advance}, want: []string{"Running", running},
			conditions: []string{
				`Ready=False ReadinessGatesNotReady the status of pod readiness gate "game.io/idle" is not "True", but Unknown`, "game.io/idle=Unknown",
			},
		},
		"readiness gate true": {edits: []func(*corev1.Pod){gate(corev1.ConditionTrue)}, steps: []step{advance}, want: []string{"Running", running}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, test.edits...)
			for _, next := range test.steps {
				next(s)
			}
			expect.Equal(t, "status", append(test.want, test.conditions...), format(s.machine.Status(s.now)))
		})
	}
}

// gate gives the pod a readiness gate, and its condition if there is a status.
func gate(statuses ...corev1.ConditionStatus) func(*corev1.Pod) {
	const idle = "game.io/idle"
	return func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: idle}}
		for _, status := range statuses {
			p.Status.Conditions = []corev1.PodCondition{{Type: idle, Status: status}}
		}
	}
}

func TestUnchangedConditionKeepsTransitionTime(t *testing.T) {
	s := newScenario(t, probed)
	advance(s)
	s.pod.Status = s.machine.Status(s.begin)
	ready("main")(s)
	later := s.begin.Add(time.Minute)
	for _, c := range s.machine.Status(later).Conditions {
		want := s.begin
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			want = later
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s: last transition time %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
}
