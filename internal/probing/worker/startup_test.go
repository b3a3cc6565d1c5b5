// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// waits makes a probe wait for a startup probe, a command "up" that runs every three seconds.
func waits(task *worker.Task) {
	handler := corev1.ExecAction{Command: []string{"up"}}
	task.Startup = &worker.Startup{
		Policy:  thresholds.Policy{Period: 3 * time.Second, SuccessThreshold: 1, FailureThreshold: 3},
		Handler: corev1.ProbeHandler{Exec: &handler},
		Target:  probing.Target{Handler: probing.HandlerExec, Timeout: time.Second, Exec: &probing.Exec{Command: handler.Command}},
		Limit:   time.Minute,
	}
}

// upAt makes the nth run of the startup probe succeed. Runs before it fail, or have no result.
func upAt(n int) func(probing.Target, int) (time.Duration, probing.Outcome, error) {
	return func(target probing.Target, run int) (time.Duration, probing.Outcome, error) {
		if target.Exec.Command[0] != "up" {
			return 0, probing.Outcome{Success: true}, nil
		}
		if run == 1 && n > 1 {
			return 0, probing.Outcome{}, errors.New("no result")
		}
		return 0, probing.Outcome{Success: run == n}, nil
	}
}

func TestWaitForStarted(t *testing.T) {
	playAll(t, map[string]scenario{
		"success opens": {
			play:    []step{results(upAt(3)), plans(probe("p", waits)), starts("a"), after(17 * time.Second)},
			runs:    map[string][]string{"up": {"0s a", "3s a", "6s a"}, "p": {"6s a", "16s a"}},
			changes: []string{"6s p >Succeeded"}, problems: []string{`0s p "CannotRun"`, `3s p ""`},
		},
		"cannot be run": {
			play: []step{func(b *bench) {
				b.result = func(probing.Target, int) (time.Duration, probing.Outcome, error) {
					return 0, probing.Outcome{}, errors.New("run command in container a: " + strings.Repeat("x", 2*probing.MaxMessageBytes) + "\xff")
				}
				b.plan(planned("p", waits))
				b.containerRuns("a")
				pass(time.Second)
				message := b.problemMessage()
				if !strings.HasPrefix(message, "startup probe: xxx") || len(message) > probing.MaxMessageBytes || !utf8.ValidString(message) {
					b.t.Errorf("problem %q", message)
				}
			}},
			runs: map[string][]string{"up": {"0s a"}}, problems: []string{`0s p "CannotRun"`},
		},
		"no slot": {
			play: []step{func(b *bench) {
				b.result = func(_ probing.Target, n int) (time.Duration, probing.Outcome, error) {
					return time.Duration(2-n) * 12 * time.Second, probing.Outcome{}, nil
				}
				b.plan(planned("p", waits))
				b.containerRuns("a")
				pass(11 * time.Second)
				want := "startup probe: the probe has not run for 3 periods: it waits for an exec slot of the node"
				expect.Equal(b.t, "problem", want, b.problemMessage())
				pass(2 * time.Second)
			}},
			runs: map[string][]string{"up": {"0s a", "12s a"}}, problems: []string{`9s p "WaitingForSlot"`, `12s p ""`},
		},
		"initial delay counts from the start": {
			play: []step{
				results(upAt(2)), plans(probe("p", waits, func(p *worker.Task) { p.Policy.InitialDelay = 8 * time.Second })), starts("a"),
				after(9 * time.Second),
			},
			runs:    map[string][]string{"up": {"0s a", "3s a"}, "p": {"8s a"}},
			changes: []string{"8s p >Succeeded"}, problems: []string{`0s p "CannotRun"`, `3s p ""`},
		},
		"each run of the container": {
			play: []step{
				plans(probe("p", waits)), results(upAt(1)), starts("a"), after(time.Second), results(upAt(3)), starts("b"),
				after(4 * time.Second),
			},
			runs:    map[string][]string{"up": {"0s a", "1s b", "4s b"}, "p": {"0s a", "4s b"}},
			changes: []string{"0s p >Succeeded", "1s p Succeeded>Unknown", "4s p Unknown>Succeeded"},
		},
		"restored result of the same run": {
			play: []step{func(b *bench) {
				b.result = upAt(0)
				b.plan(planned("p", waits, func(p *worker.Task) {
					p.Restored = thresholds.State{State: v1alpha1.ProbeFailed, ContainerID: "a"}
				}))
				b.containerRuns("a")
				pass(time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p Failed>Succeeded"},
		},
		"restored Unknown and restored result of another run": {
			play: []step{func(b *bench) {
				b.result = upAt(0)
				b.plan(planned("p", waits, func(p *worker.Task) {
					p.Restored = thresholds.State{State: v1alpha1.ProbeUnknown, ContainerID: "a"}
				}), planned("q", waits, func(p *worker.Task) {
					p.Restored = thresholds.State{State: v1alpha1.ProbeSucceeded, ContainerID: "z"}
				}))
				b.containerRuns("a")
				pass(time.Second)
			}},
			runs:    map[string][]string{"up": {"0s a", "0s a"}},
			changes: []string{"0s q Succeeded>Unknown"},
		},
		"container that runs longer than its startup may take": {
			play: []step{func(b *bench) {
				b.result = upAt(0)
				b.plan(planned("p", waits))
				b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: time.Now().Add(-58 * time.Second)})
				b.ContainersSynced()
				pass(4 * time.Second)
			}},
			runs:    map[string][]string{"up": {"0s a", "3s a"}, "p": {"3s a"}},
			changes: []string{"3s p >Succeeded"},
		},
		// As if the clock of the node were set an hour ahead.
		"clock that jumps while the container starts": {
			play: []step{func(b *bench) {
				b.result = upAt(0)
				b.plan(planned("p", waits))
				b.containerRuns("a")
				pass(time.Second)
				b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: time.Now().Add(-time.Hour)})
				pass(3 * time.Second)
				b.plan(planned("p", waits, func(p *worker.Task) { p.Startup.Limit = 10 * time.Second }))
				pass(7 * time.Second)
			}},
			runs:    map[string][]string{"up": {"0s a", "3s a", "4s a", "7s a", "10s a"}, "p": {"10s a"}},
			changes: []string{"10s p >Succeeded"},
		},
		"policy is edited": {
			play: []step{
				results(upAt(0)), plans(probe("p", waits)), starts("a"), after(time.Second), plans(probe("p")), after(time.Second),
				plans(probe("p", waits)), after(20 * time.Second),
			},
			runs:    map[string][]string{"up": {"0s a", "2s a", "5s a", "8s a", "11s a", "14s a", "17s a", "20s a"}, "p": {"1s a"}},
			changes: []string{"1s p >Succeeded"},
		},
	})
}

// TestTasksOfStartup checks what a task gets from a planned startup probe.
func TestTasksOfStartup(t *testing.T) {
	grace := int64(5)
	startup := &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}, InitialDelaySeconds: 2,
		PeriodSeconds: 3, TimeoutSeconds: 1, FailureThreshold: 4, SuccessThreshold: 1, TerminationGracePeriodSeconds: &grace,
	}
	pod := v1alpha1.PodProbe{Namespace: "games", Name: "pod", UID: "uid", IP: "10.0.0.1", Probes: []v1alpha1.ContainerProbe{{
		Name: "m#p", ContainerName: "main", Startup: startup,
		Probe: v1alpha1.ContainerProbeSpec{
			Probe: corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}}, TimeoutSeconds: 1},
		},
	}}}
	tasks, problems := worker.TasksOf([]v1alpha1.PodProbe{pod})
	if len(problems) != 0 || tasks[0].Startup == nil {
		t.Fatalf("tasks %+v, problems %v", tasks, problems)
	}
	got := tasks[0].Startup
	if got.Limit != 27*time.Second || got.Target.TCP == nil || got.Target.TCP.Address != "10.0.0.1:80" || got.Policy.Period != 3*time.Second {
		t.Errorf("startup probe %+v, want 10.0.0.1:80 every 3s with a limit of 27s", got)
	}
	pod.Probes[0].Startup = &corev1.Probe{}
	if tasks, problems = worker.TasksOf([]v1alpha1.PodProbe{pod}); len(problems) != 1 || tasks[0].Target.Handler != "" {
		t.Errorf("tasks %+v, problems %v; want one problem and a task that does not run", tasks, problems)
	}
}
