// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// at returns the time s seconds after the start of a test.
func at(s float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// step is one call of the evaluator.
type step func(*thresholds.Evaluator) (thresholds.Transition, bool)

func success(s float64, message string) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
		return e.Outcome(at(s), probing.Outcome{Success: true, Message: message})
	}
}

func failure(s float64, message string) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
		return e.Outcome(at(s), probing.Outcome{Message: message})
	}
}

func running(s float64, id string, started float64) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
		return e.ContainerChanged(at(s), thresholds.ContainerRun{ID: id, Running: true, StartedAt: at(started)})
	}
}

func stopped(s float64, id, reason string) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
		return e.ContainerChanged(at(s), thresholds.ContainerRun{ID: id, Reason: reason})
	}
}

func gone(s float64) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) { return e.ContainerGone(at(s)) }
}

func edited(s float64, policy thresholds.Policy) step {
	return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
		e.Edited(at(s), policy)
		return thresholds.Transition{}, false
	}
}

// kubernetes returns the policy of a probe with the defaults of Kubernetes.
func kubernetes() thresholds.Policy {
	return thresholds.Policy{Period: 10 * time.Second, SuccessThreshold: 1, FailureThreshold: 3}
}

func reported(state v1alpha1.ProbeState) thresholds.State {
	return thresholds.State{State: state, Message: "reported", LastProbe: at(-60), LastTransition: at(-600)}
}

const (
	none      = v1alpha1.ProbeState("")
	unknown   = v1alpha1.ProbeUnknown
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

func TestEvaluator(t *testing.T) {
	twoOfEach := thresholds.Policy{Period: 10 * time.Second, SuccessThreshold: 2, FailureThreshold: 2}
	cases := map[string]struct {
		// policy is that of Kubernetes if it is empty.
		policy thresholds.Policy
		start  thresholds.State
		steps  []step
		// want are the transitions, and final is the state afterwards.
		want  []string
		final string
		due   time.Time
	}{
		"no steps": {},
		"first success": {
			steps: []step{running(0, "a", -5), success(1, "idle")},
			want:  []string{"1s >Succeeded: idle"},
			final: "Succeeded: idle, probed 1s, since 1s",
			due:   at(0),
		},
		"failures below the threshold": {
			steps: []step{running(0, "a", 0), failure(1, "no"), failure(2, "no")},
			due:   at(0),
		},
		"failures reach the threshold": {
			steps: []step{running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"), failure(4, "3")},
			want:  []string{"1s >Succeeded: ok", "4s Succeeded>Failed: 3"},
			final: "Failed: 3, probed 4s, since 4s",
			due:   at(0),
		},
		"success resets the failure count": {
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				success(4, "ok again"), failure(5, "1"), failure(6, "2"),
			},
			want:  []string{"1s >Succeeded: ok"},
			final: "Succeeded: ok again, probed 4s, since 1s",
			due:   at(0),
		},
		"equal outcome below the threshold updates the message": {
			policy: twoOfEach,
			steps: []step{
				running(0, "a", 0), success(1, "1"), success(2, "2"), failure(3, "no"), success(4, "3"),
			},
			want:  []string{"2s >Succeeded: 2"},
			final: "Succeeded: 3, probed 4s, since 2s",
			due:   at(0),
		},
		"equal outcomes keep the probe time": {
			steps: []step{running(0, "a", 0), success(1, "1"), success(2, "2"), success(3, "2"), failure(4, "no")},
			want:  []string{"1s >Succeeded: 1"},
			final: "Succeeded: 2, probed 2s, since 1s",
			due:   at(0),
		},
		"container ends": {
			steps: []step{running(0, "a", 0), success(1, "ok"), stopped(2, "a", "exited with code 1")},
			want: []string{
				"1s >Succeeded: ok",
				"2s Succeeded>Failed: the container is not running: exited with code 1",
			},
			final: "Failed: the container is not running: exited with code 1, probed 1s, since 2s",
		},
		"container first seen after its end": {
			steps: []step{stopped(2, "a", "")},
			want:  []string{"2s >Failed: the container is not running"},
			final: "Failed: the container is not running, since 2s",
		},
		"outcome after the end of the container": {
			steps: []step{running(0, "a", 0), stopped(1, "a", ""), success(2, "late")},
			want:  []string{"1s >Failed: the container is not running"},
			final: "Failed: the container is not running, since 1s",
		},
		"restart resets state and count": {
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				running(4, "b", 4), failure(5, "1"), failure(6, "2"), failure(7, "3"),
			},
			want: []string{
				"1s >Succeeded: ok",
				"4s Succeeded>Unknown: the container is new: no result yet",
				"7s Unknown>Failed: 3",
			},
			final: "Failed: 3, probed 7s, since 7s",
			due:   at(4),
		},
		"restart before the first result": {
			steps: []step{running(0, "a", 0), failure(1, "no"), failure(2, "no"), running(3, "b", 3), failure(4, "no")},
			due:   at(3),
		},
		"crash loop": {
			steps: []step{stopped(1, "a", "exited with code 1"), stopped(5, "b", "exited with code 2")},
			want:  []string{"1s >Failed: the container is not running: exited with code 1"},
			final: "Failed: the container is not running: exited with code 2, since 1s",
		},
		"container starts after it was created": {
			steps: []step{stopped(1, "a", "created"), running(2, "a", 2)},
			want: []string{
				"1s >Failed: the container is not running: created",
				"2s Failed>Unknown: the container is new: no result yet",
			},
			final: "Unknown: the container is new: no result yet, since 2s",
			due:   at(2),
		},
		"same container again": {
			steps: []step{running(0, "a", 0), success(1, "ok"), running(2, "a", 0)},
			want:  []string{"1s >Succeeded: ok"},
			final: "Succeeded: ok, probed 1s, since 1s",
			due:   at(0),
		},
		"container runs after a long start": {
			steps: []step{gone(1), gone(3600), running(7200, "a", 7200), success(7201, "idle")},
			want:  []string{"7201s >Succeeded: idle"},
			final: "Succeeded: idle, probed 7201s, since 7201s",
			due:   at(7200),
		},
		"edit after the container was removed, container runs again": {
			steps: []step{running(0, "a", 0), gone(1), edited(2, kubernetes()), gone(60), running(70, "b", 70)},
			want: []string{
				"1s >Failed: the container is not running: it does not exist",
				"70s Failed>Unknown: the container is new: no result yet",
			},
			final: "Unknown: the container is new: no result yet, since 70s",
			due:   at(70),
		},
		"restored, same container": {
			start: reported(succeeded),
			steps: []step{running(0, "a", -900), failure(1, "no"), failure(2, "no")},
			final: "Succeeded: reported, probed -60s, since -600s",
			due:   at(0),
		},
		"restored, container restarted": {
			start: reported(succeeded),
			steps: []step{running(0, "b", -30)},
			want:  []string{"0s Succeeded>Unknown: the container is new: no result yet"},
			final: "Unknown: the container is new: no result yet, probed -60s, since 0s",
			due:   at(0),
		},
		"restored, container started within the second of the report": {
			start: reported(succeeded),
			steps: []step{running(0, "a", -59.1)},
			final: "Succeeded: reported, probed -60s, since -600s",
			due:   at(0),
		},
		"restored, transition newer than last probe": {
			start: thresholds.State{State: failed, Message: "reported", LastProbe: at(-60), LastTransition: at(-20)},
			steps: []step{running(0, "a", -30)},
			final: "Failed: reported, probed -60s, since -20s",
			due:   at(0),
		},
		"restored without times": {
			start: thresholds.State{State: succeeded},
			steps: []step{running(0, "a", -30), failure(1, "no")},
			final: "Succeeded",
			due:   at(0),
		},
		"restored, container removed": {
			start: reported(succeeded),
			steps: []step{gone(1)},
			want:  []string{"1s Succeeded>Failed: the container is not running: it does not exist"},
			final: "Failed: the container is not running: it does not exist, probed -60s, since 1s",
		},
		"edit keeps the state until a result of the new probe": {
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"), edited(4, kubernetes()),
				failure(5, "3"), failure(6, "4"),
			},
			want:  []string{"1s >Succeeded: ok"},
			final: "Succeeded: ok, probed 1s, since 1s",
			due:   at(4),
		},
		"counts start at zero after an edit": {
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				edited(4, thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 2}),
				failure(5, "3"), failure(6, "4"),
			},
			want:  []string{"1s >Succeeded: ok", "6s Succeeded>Failed: 4"},
			final: "Failed: 4, probed 6s, since 6s",
			due:   at(4),
		},
		"edit before the first result": {
			steps: []step{running(0, "a", 0), edited(4, kubernetes())},
			due:   at(4),
		},
		"edit after the container stopped": {
			steps: []step{stopped(0, "a", ""), edited(4, kubernetes())},
			want:  []string{"0s >Failed: the container is not running"},
			final: "Failed: the container is not running, since 0s",
		},
		"initial delay": {
			policy: thresholds.Policy{InitialDelay: 30 * time.Second, Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
			steps:  []step{running(10, "a", 5)},
			due:    at(35),
		},
		"initial delay edited": {
			policy: thresholds.Policy{InitialDelay: 30 * time.Second, Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
			steps:  []step{running(10, "a", 5), edited(11, kubernetes())},
			due:    at(11),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := tc.policy
			if policy == (thresholds.Policy{}) {
				policy = kubernetes()
			}
			evaluator := thresholds.Restore(policy, thresholds.Phase{}, tc.start)
			var got []string
			for _, s := range tc.steps {
				if c, changed := s(evaluator); changed {
					got = append(got, strings.TrimSuffix(fmt.Sprintf("%gs %s>%s: %s", secondsOf(c.At), c.From, c.To, c.Message), ": "))
				}
			}
			expect.Equal(t, "transitions", tc.want, got)
			expect.Equal(t, "final state", tc.final, textOf(evaluator.State()))
			if due, _ := evaluator.Due(); !due.Equal(tc.due) {
				t.Errorf("Due() = %s, want %s", due, tc.due)
			}
		})
	}
}

func secondsOf(t time.Time) float64 { return t.Sub(at(0)).Seconds() }

// textOf returns the message and the times of a state, which is empty without a result.
func textOf(s thresholds.State) string {
	text := string(s.State)
	if s.Message != "" {
		text += ": " + s.Message
	}
	if !s.LastProbe.IsZero() {
		text += fmt.Sprintf(", probed %gs", secondsOf(s.LastProbe))
	}
	if !s.LastTransition.IsZero() {
		text += fmt.Sprintf(", since %gs", secondsOf(s.LastTransition))
	}
	return text
}

// The state of a probe changes when enough consecutive runs have had the same result.
func ExampleEvaluator() {
	policy := thresholds.PolicyOf(&corev1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 2})
	evaluator := thresholds.New(policy, thresholds.Phase{})
	now := time.Unix(0, 0)
	evaluator.ContainerChanged(now, thresholds.ContainerRun{ID: "a", Running: true, StartedAt: now})
	for _, success := range []bool{true, false, true, false, false} {
		if transition, changed := evaluator.Outcome(now, probing.Outcome{Success: success}); changed {
			fmt.Println("now", transition.To)
			continue
		}
		fmt.Println("still", evaluator.State().State)
	}
	// Output:
	// now Succeeded
	// still Succeeded
	// still Succeeded
	// still Succeeded
	// now Failed
}
