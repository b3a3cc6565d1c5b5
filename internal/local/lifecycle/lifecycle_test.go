// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestPodMachine(t *testing.T) {
	const second = time.Second
	seconds := int64(5)
	backOff := "BackOff main: Back-off restarting failed container main in pod p_default(uid)"
	for name, test := range map[string]struct {
		edits []func(*corev1.Pod)
		steps []step
		want  []string
		done  bool
	}{
		"container starts": {
			steps: []step{advance},
			want:  []string{"0s Start main", "0s Started main: Container started"},
		},
		"first restart immediate, next after 10s, 20s, 40s": {
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
		"failed start is retried": {
			edits: []func(*corev1.Pod){},
			steps: []step{func(s *scenario) { s.broken["main"] = true }, advance, advance, pass(10 * second)},
			want: []string{
				"0s Start main", "0s Failed main: Error: broken",
				"0s Start main", "0s Failed main: Error: broken", "0s " + backOff,
				"10s Start main", "10s Failed main: Error: broken", "10s " + backOff,
			},
		},
		"restart policy Never": {
			edits: []func(*corev1.Pod){never},
			steps: []step{advance, exit("main", 1), pass(time.Hour)},
			want:  []string{"0s Start main", "0s Started main: Container started"},
			done:  true,
		},
		"restart policy OnFailure": {
			edits: []func(*corev1.Pod){onFailure},
			steps: []step{advance, exit("main", 1), exit("main", 0), pass(time.Hour)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Start main", "0s Started main: Container started",
			},
			done: true,
		},
		"second restart for probe immediate": {
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
		"frequent restarts for probe wait": {
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
		"grace period of probe": {
			edits: []func(*corev1.Pod){never},
			steps: []step{
				advance, failed("main", "startup", &corev1.Probe{TerminationGracePeriodSeconds: &seconds}), pass(time.Minute),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Container main failed startup probe", "0s Terminate main", "5s Kill main",
			},
		},
		"no grace period is two seconds": {
			edits: []func(*corev1.Pod){grace(0)},
			steps: []step{advance, stop, pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s Terminate main", "2s Kill main",
			},
		},
		"stopped pod starts nothing": {
			steps: []step{advance, exit("main", 1), exit("main", 1), stop, pass(time.Hour)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Start main", "0s Started main: Container started", "0s " + backOff,
			},
			done: true,
		},
		"preStop counts towards grace period": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PreStop: execHook()})},
			steps: []step{advance, stop, pass(10 * second), hook("main", nil), pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "10s Terminate main", "30s Kill main",
			},
		},
		"preStop does not end": {
			edits: []func(*corev1.Pod){hooks(corev1.Lifecycle{PreStop: execHook()})},
			steps: []step{advance, stop, pass(time.Minute)},
			want: []string{
				"0s Start main", "0s Started main: Container started",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "30s Terminate main", "32s Kill main",
			},
		},
		"preStop fails": {
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
				// The end of postStart does not count as the end of preStop.
				func(s *scenario) {
					c := s.machine.Container("main")
					s.take(s.machine.HookEnded(s.now, "main", c.ID, c.Spec.Lifecycle.PostStart, nil))
				},
				pass(second), hook("main", nil),
			},
			want: []string{
				"0s Start main", "0s Started main: Container started", "0s RunHook main 0s",
				"0s Killing main: Stopping container main", "0s RunHook main 30s", "1s Terminate main",
			},
		},
		"init containers run in order": {
			edits: []func(*corev1.Pod){inits("a", "b")},
			steps: []step{advance, exit("a", 1), pass(second), exit("a", 0), exit("b", 0)},
			want: []string{
				"0s Start a", "0s Started a: Container started", "0s Start a", "0s Started a: Container started",
				"1s Start b", "1s Started b: Container started", "1s Start main", "1s Started main: Container started",
			},
		},
		"failed init container with restart policy Never": {
			edits: []func(*corev1.Pod){never, inits("side", "a")},
			steps: []step{advance, startup("side"), exit("a", 1), exit("side", 0)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "0s Start a", "0s Started a: Container started",
				"0s Killing side: Stopping container side", "0s Terminate side",
			},
			done: true,
		},
		"next init container starts after startup probe of sidecar": {
			edits: []func(*corev1.Pod){inits("side", "a")},
			steps: []step{advance, pass(second), startup("side"), pass(second), exit("a", 0)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "1s Start a", "1s Started a: Container started",
				"2s Start main", "2s Started main: Container started",
			},
		},
		"sidecar restarts with restart policy Never": {
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
		"sidecars stop last and in reverse order": {
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
		"sidecars wait no longer than grace period": {
			edits: []func(*corev1.Pod){inits("side")},
			steps: []step{advance, startup("side"), stop, pass(time.Minute)},
			want: []string{
				"0s Start side", "0s Started side: Container started", "0s Start main", "0s Started main: Container started",
				"0s Killing side: Stopping container side", "0s Killing main: Stopping container main", "0s Terminate main",
				"30s Terminate side", "30s Kill main", "32s Kill side",
			},
		},
		"events of earlier run ignored": {
			steps: []step{
				advance, exit("main", 1),
				func(s *scenario) {
					s.take(s.machine.ProbeFailed(s.now, "main", "main-0", "liveness", nil))
					s.take(s.machine.StartupSucceeded(s.now, "main", "main-0"))
					s.take(s.machine.HookEnded(s.now, "main", "main-0", nil, nil))
					s.take(s.machine.ContainerExited(s.now, "main", lifecycle.ContainerExit{ID: "main-0"}))
					s.machine.ReadinessChanged("main", "main-0", false)
				},
				advance,
			},
			want: []string{
				"0s Start main", "0s Started main: Container started", "0s Start main", "0s Started main: Container started",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, test.edits...)
			for _, next := range test.steps {
				next(s)
			}
			expect.Equal(t, "actions", test.want, s.log)
			expect.Equal(t, "Done()", test.done, s.machine.Done())
		})
	}
}
