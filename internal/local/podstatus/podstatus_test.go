// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/podstatus"
)

// begin returns the time of all events.
func begin() time.Time { return time.Unix(1_000_000, 0) }

func podOf(policy corev1.RestartPolicy, names ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid"}}
	pod.Spec.RestartPolicy = policy
	always := corev1.ContainerRestartPolicyAlways
	for _, name := range names {
		kind, name, _ := strings.Cut(name, " ")
		switch c := (corev1.Container{Name: name}); kind {
		case "init":
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		case "side":
			c.RestartPolicy, c.StartupProbe = &always, &corev1.Probe{}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		case "probed":
			c.ReadinessProbe = &corev1.Probe{}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

// hooked gives the first container a postStart hook.
func hooked(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
	}
	return pod
}

// apply applies events to a machine: start NAME, hooked NAME, exit NAME CODE, started NAME,
// ready NAME, stop.
func apply(m *lifecycle.PodMachine, events ...string) {
	m.Advance(begin())
	for _, event := range events {
		var verb, name string
		var code int32
		_, _ = fmt.Sscanf(event, "%s %s %d", &verb, &name, &code)
		c := m.Container(name)
		switch verb {
		case "start":
			m.ContainerStarted(begin(), name, fmt.Sprintf("%s-%d", name, c.Starts))
		case "hooked":
			m.HookEnded(begin(), name, c.ID, c.Spec.Lifecycle.PostStart, nil)
		case "exit":
			m.ContainerExited(begin(), name, lifecycle.ContainerExit{ID: c.ID, Code: code, FinishedAt: begin()})
		case "started":
			m.StartupSucceeded(begin(), name, c.ID)
		case "ready":
			m.ReadinessChanged(name, c.ID, true)
		case "stop":
			m.Stop(begin())
		}
		m.Advance(begin())
	}
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

func TestOf(t *testing.T) {
	const always, never = corev1.RestartPolicyAlways, corev1.RestartPolicyNever
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		events []string
		want   []string
	}{
		"not started": {
			pod: podOf(always, "main a"),
			want: []string{
				"Pending", "a: ContainerCreating started=false ready=false restarts=0",
				"Ready=False ContainersNotReady containers with unready status: [a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [a]",
			},
		},
		"running and ready": {
			pod: podOf(always, "main a"), events: []string{"start a"},
			want: []string{"Running", "a: Running started=true ready=true restarts=0"},
		},
		"one of two containers ready": {
			pod: podOf(always, "main a", "probed b"), events: []string{"start a", "start b"},
			want: []string{
				"Running", "a: Running started=true ready=true restarts=0", "b: Running started=true ready=false restarts=0",
				"Ready=False ContainersNotReady containers with unready status: [b]",
				"ContainersReady=False ContainersNotReady containers with unready status: [b]",
			},
		},
		"readiness probe succeeded": {
			pod: podOf(always, "probed b"), events: []string{"start b", "ready b"},
			want: []string{"Running", "b: Running started=true ready=true restarts=0"},
		},
		"postStart hook runs after restart": {
			pod: hooked(podOf(always, "main a")), events: []string{"start a", "hooked a", "exit a 1", "start a"},
			want: []string{
				"Running", "a: ContainerCreating started=false ready=false restarts=1 last=1",
				"Ready=False ContainersNotReady containers with unready status: [a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [a]",
			},
		},
		"crash loop": {
			pod: podOf(always, "main a"), events: []string{"start a", "exit a 1", "start a", "exit a 2"},
			want: []string{
				"Running", "a: CrashLoopBackOff started=false ready=false restarts=1 last=2",
				"Ready=False ContainersNotReady containers with unready status: [a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [a]",
			},
		},
		"succeeded": {
			pod: podOf(never, "main a", "main b"), events: []string{"start a", "start b", "exit a 0", "exit b 0"},
			want: []string{
				"Succeeded", "a: Completed 0 started=false ready=false restarts=0", "b: Completed 0 started=false ready=false restarts=0",
				"Initialized=True PodCompleted", "Ready=False PodCompleted", "ContainersReady=False PodCompleted",
			},
		},
		"one failed, one running": {
			pod: podOf(never, "main a", "main b"), events: []string{"start a", "start b", "exit a 1"},
			want: []string{
				"Running", "a: Error 1 started=false ready=false restarts=0", "b: Running started=true ready=true restarts=0",
				"Ready=False ContainersNotReady containers with unready status: [a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [a]",
			},
		},
		"failed": {
			pod: podOf(never, "main a", "main b"), events: []string{"start a", "start b", "exit a 1", "exit b 0"},
			want: []string{
				"Failed", "a: Error 1 started=false ready=false restarts=0", "b: Completed 0 started=false ready=false restarts=0",
				"Ready=False PodFailed", "ContainersReady=False PodFailed",
			},
		},
		"init container running": {
			pod: podOf(always, "init i", "side s", "main a"), events: []string{"start i"},
			want: []string{
				"Pending", "i: Running started=true ready=false restarts=0",
				"s: PodInitializing started=false ready=false restarts=0", "a: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [i s]",
				"Ready=False ContainersNotReady containers with unready status: [s a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [s a]",
			},
		},
		"sidecar not started": {
			pod: podOf(always, "init i", "side s", "main a"), events: []string{"start i", "exit i 0", "start s"},
			want: []string{
				"Pending", "i: Completed 0 started=false ready=true restarts=0",
				"s: Running started=false ready=false restarts=0", "a: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [s]",
				"Ready=False ContainersNotReady containers with unready status: [s a]",
				"ContainersReady=False ContainersNotReady containers with unready status: [s a]",
			},
		},
		"sidecar restarting": {
			pod: podOf(always, "side s", "main a"), events: []string{"start s", "started s", "start a", "exit s 1", "start s"},
			want: []string{
				"Running", "s: Running started=false ready=false restarts=1 last=1", "a: Running started=true ready=true restarts=0",
				"Ready=False ContainersNotReady containers with unready status: [s]",
				"ContainersReady=False ContainersNotReady containers with unready status: [s]",
			},
		},
		"init container failed": {
			pod: podOf(never, "init i", "main a"), events: []string{"start i", "exit i 1"},
			want: []string{
				"Failed", "i: Error 1 started=false ready=false restarts=0", "a: PodInitializing started=false ready=false restarts=0",
				"Initialized=False ContainersNotInitialized containers with incomplete status: [i]",
				"Ready=False PodFailed", "ContainersReady=False PodFailed",
			},
		},
		"being stopped": {
			pod: podOf(always, "main a"), events: []string{"start a", "stop"},
			want: []string{"Running", "a: Running started=true ready=true restarts=0"},
		},
		"stopped": {
			pod: podOf(always, "main a"), events: []string{"start a", "stop", "exit a 143"},
			want: []string{
				"Failed", "a: Error 143 started=false ready=false restarts=0",
				"Ready=False PodFailed", "ContainersReady=False PodFailed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			machine := lifecycle.New(test.pod, lifecycle.CrashLoop{})
			apply(machine, test.events...)
			got := format(podstatus.Of(begin(), test.pod, machine))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadinessGates(t *testing.T) {
	const gate = corev1.PodConditionType("game.io/idle")
	for name, test := range map[string]struct {
		conditions []corev1.PodCondition
		want       []string
	}{
		"no condition": {
			want: []string{`Ready=False ReadinessGatesNotReady corresponding condition of pod readiness gate "game.io/idle" does not exist.`},
		},
		"not true": {
			conditions: []corev1.PodCondition{{Type: gate, Status: corev1.ConditionUnknown}},
			want: []string{
				`Ready=False ReadinessGatesNotReady the status of pod readiness gate "game.io/idle" is not "True", but Unknown`,
				"game.io/idle=Unknown",
			},
		},
		"true": {conditions: []corev1.PodCondition{{Type: gate, Status: corev1.ConditionTrue}}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(corev1.RestartPolicyAlways, "main a")
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
			pod.Status.Conditions = test.conditions
			machine := lifecycle.New(pod, lifecycle.CrashLoop{})
			apply(machine, "start a")
			want := append([]string{"Running", "a: Running started=true ready=true restarts=0"}, test.want...)
			if diff := cmp.Diff(want, format(podstatus.Of(begin(), pod, machine))); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnchangedConditionKeepsTransitionTime(t *testing.T) {
	pod := podOf(corev1.RestartPolicyAlways, "probed a")
	machine := lifecycle.New(pod, lifecycle.CrashLoop{})
	apply(machine, "start a")
	pod.Status = podstatus.Of(begin(), pod, machine)
	apply(machine, "ready a")
	later := begin().Add(time.Minute)
	for _, c := range podstatus.Of(later, pod, machine).Conditions {
		want := begin()
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			want = later
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s: last transition time %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
}
