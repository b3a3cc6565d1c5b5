// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/backoff"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// bench drives a machine through a story, and writes down what it asks for.
type bench struct {
	t       *testing.T
	pod     *corev1.Pod
	machine *lifecycle.Pod
	now     time.Time
	begin   time.Time
	log     []string
	// broken are containers that can't be started.
	broken map[string]bool
}

func newBench(t *testing.T, edits ...func(*corev1.Pod)) *bench {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "uid"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main"}},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	begin := time.Unix(1_000_000, 0)
	return &bench{t: t, pod: pod, machine: lifecycle.New(pod, backoff.Policy{}), now: begin, begin: begin, broken: map[string]bool{}}
}

// did does what the machine asks for: starts succeed at once, all else is only noted.
func (b *bench) did(actions []lifecycle.Action) {
	for len(actions) > 0 {
		action := actions[0]
		actions = actions[1:]
		b.log = append(b.log, fmt.Sprintf("%s %s", b.now.Sub(b.begin), action))
		if action.Verb != lifecycle.Start {
			continue
		}
		id := fmt.Sprintf("%s-%d", action.Container, b.machine.Container(action.Container).Starts)
		if b.broken[action.Container] {
			actions = append(actions, b.machine.NotBegun(b.now, action.Container, id, errors.New("broken"))...)
			continue
		}
		actions = append(actions, b.machine.Begun(b.now, action.Container, id)...)
	}
}

// step is one thing that happens.
type step func(b *bench)

func advance(b *bench) { b.did(b.machine.Advance(b.now)) }

// pass lets time go by, and what is due be done when it is.
func pass(d time.Duration) step {
	return func(b *bench) {
		until := b.now.Add(d)
		for {
			due, ok := b.machine.Due()
			if !ok || due.After(until) {
				break
			}
			if due.After(b.now) {
				b.now = due
			}
			before := len(b.log)
			advance(b)
			if next, ok := b.machine.Due(); ok && !next.After(b.now) && len(b.log) == before {
				b.t.Fatalf("due at %s, and nothing to do", b.now.Sub(b.begin))
			}
		}
		b.now = until
	}
}

func exit(name string, code int32) step {
	return func(b *bench) {
		c := b.machine.Container(name)
		b.did(b.machine.ContainerEnded(b.now, name, lifecycle.Exit{ID: c.ID, Code: code, FinishedAt: b.now}))
		advance(b)
	}
}

func failed(name, probe string, own *corev1.Probe) step {
	return func(b *bench) {
		b.did(b.machine.ProbeFailed(b.now, name, b.machine.Container(name).ID, probe, own))
	}
}

func startup(name string) step {
	return func(b *bench) { b.did(b.machine.StartupSucceeded(b.now, name, b.machine.Container(name).ID)) }
}

func hook(name string, err error) step {
	return func(b *bench) {
		c := b.machine.Container(name)
		h := c.Spec.Lifecycle.PostStart
		if c.Phase == lifecycle.Stopping {
			h = c.Spec.Lifecycle.PreStop
		}
		b.did(b.machine.HookEnded(b.now, name, c.ID, h, err))
	}
}

func stop(b *bench) { b.did(b.machine.Stop(b.now)) }

func never(p *corev1.Pod)     { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
func onFailure(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }

func grace(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func inits(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			c := corev1.Container{Name: name}
			if strings.HasPrefix(name, "side") {
				always := corev1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
				c.StartupProbe = &corev1.Probe{}
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
	}
}

func hooks(l corev1.Lifecycle) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = &l }
}

func execHook() *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}
}

func TestStories(t *testing.T) {
	const second = time.Second
	seconds := int64(5)
	backOff := "BackOff main: Back-off restarting failed container main in pod p_default(uid)"
	for name, test := range map[string]struct {
		edits []func(*corev1.Pod)
		steps []step
		want  []string
		done  bool
	}{
		"a container starts": {
			steps: []step{advance},
			want:  []string{"0s Start main", "0s Started main: Container started"},
		},
		"the first restart is at once, the next wait 10s, 20s, 40s": {
			steps: []step{
				advance, pass(second), exit("main", 1), pass(second), exit("main", 1), pass(11 * second),
				exit("main", 0), pass(21 * second), exit("main", 1), pass(40 * second),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"1s Start main", "1s Started main: Container started",
				"2s " + backOff, "12s Start main", "12s Started main: Container started",
				"13s " + backOff, "33s Start main", "33s Started main: Container started",
				"34s " + backOff, "1m14s Start main", "1m14s Started main: Container started",
			},
		},
		"a long run makes the delay start over": {
			steps: []step{
				advance, exit("main", 1), exit("main", 1), pass(10 * second),
				pass(10*time.Minute + second), exit("main", 1), exit("main", 1), pass(10 * second),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Start main", "0s Started main: Container started",
				"0s " + backOff, "10s Start main", "10s Started main: Container started",
				"10m11s Start main", "10m11s Started main: Container started",
				"10m11s " + backOff, "10m21s Start main", "10m21s Started main: Container started",
			},
		},
		"what can't be started is tried again": {
			edits: []func(*corev1.Pod){},
			steps: []step{func(b *bench) { b.broken["main"] = true }, advance, advance, pass(10 * second)},
			want: []string{
				"0s Start main", "0s Failed main: Error: broken",
				"0s Start main", "0s Failed main: Error: broken", "0s " + backOff,
				"10s Start main", "10s Failed main: Error: broken", "10s " + backOff,
			},
		},
		"never restarted": {
			edits: []func(*corev1.Pod){never},
			steps: []step{advance, exit("main", 1), pass(time.Hour)},
			want:  []string{"0s Start main", "0s Started main: Container started"},
			done:  true,
		},
		"a success is not restarted on failure": {
			edits: []func(*corev1.Pod){onFailure},
			steps: []step{advance, exit("main", 1), exit("main", 0), pass(time.Hour)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Start main", "0s Started main: Container started",
			},
			done: true,
		},
		"the second restart for a probe is at once too": {
			steps: []step{
				advance, pass(second), failed("main", "liveness", nil), pass(30 * second), exit("main", 137),
				pass(second), failed("main", "liveness", nil), exit("main", 143),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"1s Killing main: Container main failed liveness probe, will be restarted", "1s Terminate main", "31s Kill main",
				"31s Start main", "31s Started main: Container started",
				"32s Killing main: Container main failed liveness probe, will be restarted", "32s Terminate main",
				"32s Start main", "32s Started main: Container started",
			},
		},
		"restarts for a probe wait once they come faster than their delay": {
			steps: []step{
				advance,
				failed("main", "liveness", nil), exit("main", 0), pass(second),
				failed("main", "liveness", nil), exit("main", 0), pass(second),
				failed("main", "liveness", nil), exit("main", 0), pass(10 * second),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Container main failed liveness probe, will be restarted", "0s Terminate main",
				"0s Start main", "0s Started main: Container started",
				"1s Killing main: Container main failed liveness probe, will be restarted", "1s Terminate main",
				"1s Start main", "1s Started main: Container started",
				"2s Killing main: Container main failed liveness probe, will be restarted", "2s Terminate main",
				"2s " + backOff, "12s Start main", "12s Started main: Container started",
			},
		},
		"a probe's own grace": {
			edits: []func(*corev1.Pod){never},
			steps: []step{
				advance, failed("main", "startup", &corev1.Probe{TerminationGracePeriodSeconds: &seconds}), pass(time.Minute),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Container main failed startup probe", "0s Terminate main", "5s Kill main",
			},
		},
		"no grace is two seconds": {
			edits: []func(*corev1.Pod){grace(0)},
			steps: []step{advance, stop, pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s Terminate main", "2s Kill main",
			},
		},
		"a stopped pod starts nothing": {
			steps: []step{advance, exit("main", 1), exit("main", 1), stop, pass(time.Hour)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Start main", "0s Started main: Container started", "0s " + backOff,
			},
			done: true,
		},
		"preStop takes of the grace": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PreStop: execHook()})},
			steps: []step{advance, stop, pass(10 * second), hook("main", nil), pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "10s Terminate main", "30s Kill main",
			},
		},
		"preStop that does not end": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PreStop: execHook()})},
			steps: []step{advance, stop, pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "30s Terminate main", "32s Kill main",
			},
		},
		"preStop that fails": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PreStop: execHook()})},
			steps: []step{advance, stop, hook("main", errors.New("no"))},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s RunHook main 30s",
				"0s FailedPreStopHook main: PreStopHook failed", "0s Terminate main",
			},
		},
		"postStart fails": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PostStart: execHook()})},
			steps: []step{advance, pass(second), hook("main", errors.New("no")), exit("main", 143)},
			want: []string{
				"0s Start main", "0s Started main: Container started", "0s RunHook main 0s",
				"1s FailedPostStartHook main: PostStartHook failed", "1s Killing main: FailedPostStartHook", "1s Terminate main",
				"1s Start main", "1s Started main: Container started", "1s RunHook main 0s",
			},
		},
		"stopped while postStart runs": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PostStart: execHook(), PreStop: execHook()})},
			steps: []step{
				advance, stop,
				// The end of postStart is not taken for that of preStop.
				func(b *bench) {
					c := b.machine.Container("main")
					b.did(b.machine.HookEnded(b.now, "main", c.ID, c.Spec.Lifecycle.PostStart, nil))
				},
				pass(second), hook("main", nil),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started", "0s RunHook main 0s",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "1s Terminate main",
			},
		},
		"init containers run one after the other": {
			edits: []func(*corev1.Pod){inits("a", "b")},
			steps: []step{advance, exit("a", 1), pass(second), exit("a", 0), exit("b", 0)},
			want: []string{
				"0s Start a", "0s Started a: Container started", "0s Start a", "0s Started a: Container started",
				"1s Start b", "1s Started b: Container started", "1s Start main", "1s Started main: Container started",
			},
		},
		"a failed init container ends a pod that is never restarted": {
			edits: []func(*corev1.Pod){never, inits("side", "a")},
			steps: []step{advance, startup("side"), exit("a", 1), exit("side", 0)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "0s Start a", "0s Started a: Container started",
				"0s Killing side: Stopping container side", "0s Terminate side",
			},
			done: true,
		},
		"a sidecar's startup probe lets the next one start": {
			edits: []func(*corev1.Pod){inits("side", "a")},
			steps: []step{advance, pass(second), startup("side"), pass(second), exit("a", 0)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "1s Start a", "1s Started a: Container started",
				"2s Start main", "2s Started main: Container started",
			},
		},
		"a sidecar restarts whatever the policy, and the pod stays initialized": {
			edits: []func(*corev1.Pod){never, inits("side", "a")},
			steps: []step{advance, startup("side"), exit("a", 0), failed("side", "liveness", nil), exit("side", 143), exit("side", 0)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "0s Start a", "0s Started a: Container started",
				"0s Start main", "0s Started main: Container started",
				"0s Killing side: Init container side failed liveness probe", "0s Terminate side",
				"0s Start side", "0s Started side: Container started",
				"0s Start side", "0s Started side: Container started",
			},
		},
		"sidecars end last and in reverse": {
			edits: []func(*corev1.Pod){inits("side-a", "side-b")},
			steps: []step{
				advance, startup("side-a"), startup("side-b"), stop, pass(second), exit("main", 0),
				pass(second), exit("side-b", 0), pass(second), exit("side-a", 0),
			},
			want: []string{
				"0s Start side-a", "0s Started side-a: Container started", "0s Start side-b", "0s Started side-b: Container started",
				"0s Start main", "0s Started main: Container started",
				"0s Killing side-a: Stopping container side-a", "0s Killing side-b: Stopping container side-b",
				"0s Killing main: Stopping container main", "0s Terminate main",
				"1s Terminate side-b", "2s Terminate side-a",
			},
			done: true,
		},
		"sidecars don't wait longer than the grace": {
			edits: []func(*corev1.Pod){inits("side")},
			steps: []step{advance, startup("side"), stop, pass(time.Minute)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "0s Start main", "0s Started main: Container started",
				"0s Killing side: Stopping container side", "0s Killing main: Stopping container main", "0s Terminate main",
				"30s Terminate side", "30s Kill main", "32s Kill side",
			},
		},
		"what is told of a start that has ended counts for nothing": {
			steps: []step{
				advance, exit("main", 1),
				func(b *bench) {
					b.did(b.machine.ProbeFailed(b.now, "main", "main-0", "liveness", nil))
					b.did(b.machine.StartupSucceeded(b.now, "main", "main-0"))
					b.did(b.machine.HookEnded(b.now, "main", "main-0", nil, nil))
					b.did(b.machine.ContainerEnded(b.now, "main", lifecycle.Exit{ID: "main-0"}))
					b.machine.ReadinessChanged("main", "main-0", false)
				},
				advance,
			},
			want: []string{
				"0s Start main", "0s Started main: Container started", "0s Start main", "0s Started main: Container started",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.edits...)
			for _, s := range test.steps {
				s(b)
			}
			if diff := cmp.Diff(test.want, b.log); diff != "" {
				t.Errorf("what was asked for (-want +got):\n%s", diff)
			}
			if got := b.machine.Done(); got != test.done {
				t.Errorf("done is %t, want %t", got, test.done)
			}
		})
	}
}
