// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// at returns the time s seconds after the start of a test.
func at(s float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// step is one call of the evaluator.
type step func(*streak.Evaluator) (streak.Transition, bool)

func success(s float64, message string) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) {
		return e.Outcome(at(s), probe.Outcome{Success: true, Message: message})
	}
}

func failure(s float64, message string) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) {
		return e.Outcome(at(s), probe.Outcome{Message: message})
	}
}

func running(s float64, id string, started float64) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) {
		return e.ContainerChanged(at(s), streak.ContainerRun{ID: id, Running: true, StartedAt: at(started)})
	}
}

func stopped(s float64, id, reason string) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) {
		return e.ContainerChanged(at(s), streak.ContainerRun{ID: id, Reason: reason})
	}
}

func gone(s float64) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) { return e.ContainerGone(at(s)) }
}

func edited(s float64, policy streak.Policy) step {
	return func(e *streak.Evaluator) (streak.Transition, bool) {
		e.Edited(at(s), policy)
		return streak.Transition{}, false
	}
}

// kubernetes returns the policy of a probe with the defaults of Kubernetes.
func kubernetes() streak.Policy {
	return streak.Policy{Period: 10 * time.Second, SuccessThreshold: 1, FailureThreshold: 3}
}

func reported(state v1alpha1.ProbeState) streak.State {
	return streak.State{State: state, Message: "reported", LastProbe: at(-60), LastTransition: at(-600)}
}

const (
	none      = v1alpha1.ProbeState("")
	unknown   = v1alpha1.ProbeUnknown
	succeeded = v1alpha1.ProbeSucceeded
	failed    = v1alpha1.ProbeFailed
)

func TestEvaluator(t *testing.T) {
	const messageGone = "the container is not running: it does not exist"
	twoOfEach := streak.Policy{Period: 10 * time.Second, SuccessThreshold: 2, FailureThreshold: 2}
	cases := map[string]struct {
		policy streak.Policy
		start  streak.State
		steps  []step
		want   []streak.Transition
		final  streak.State
		due    time.Time
	}{
		"no steps": {policy: kubernetes()},
		"first success": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", -5), success(1, "idle")},
			want:   []streak.Transition{{From: none, To: succeeded, Message: "idle", At: at(1)}},
			final:  streak.State{State: succeeded, Message: "idle", LastProbe: at(1), LastTransition: at(1)},
			due:    at(0),
		},
		"failures below the threshold": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), failure(1, "no"), failure(2, "no")},
			due:    at(0),
		},
		"failures reach the threshold": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"), failure(4, "3")},
			want: []streak.Transition{
				{From: none, To: succeeded, Message: "ok", At: at(1)},
				{From: succeeded, To: failed, Message: "3", At: at(4)},
			},
			final: streak.State{State: failed, Message: "3", LastProbe: at(4), LastTransition: at(4)},
			due:   at(0),
		},
		"success resets the failure count": {
			policy: kubernetes(),
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				success(4, "ok again"), failure(5, "1"), failure(6, "2"),
			},
			want:  []streak.Transition{{From: none, To: succeeded, Message: "ok", At: at(1)}},
			final: streak.State{State: succeeded, Message: "ok again", LastProbe: at(4), LastTransition: at(1)},
			due:   at(0),
		},
		"equal outcome below the threshold updates the message": {
			policy: twoOfEach,
			steps: []step{
				running(0, "a", 0), success(1, "1"), success(2, "2"), failure(3, "no"), success(4, "3"),
			},
			want:  []streak.Transition{{From: none, To: succeeded, Message: "2", At: at(2)}},
			final: streak.State{State: succeeded, Message: "3", LastProbe: at(4), LastTransition: at(2)},
			due:   at(0),
		},
		"equal outcomes keep the probe time": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), success(1, "1"), success(2, "2"), success(3, "2"), failure(4, "no")},
			want:   []streak.Transition{{From: none, To: succeeded, Message: "1", At: at(1)}},
			final:  streak.State{State: succeeded, Message: "2", LastProbe: at(2), LastTransition: at(1)},
			due:    at(0),
		},
		"container ends": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), success(1, "ok"), stopped(2, "a", "exited with code 1")},
			want: []streak.Transition{
				{From: none, To: succeeded, Message: "ok", At: at(1)},
				{From: succeeded, To: failed, Message: "the container is not running: exited with code 1", At: at(2)},
			},
			final: streak.State{
				State: failed, Message: "the container is not running: exited with code 1",
				LastProbe: at(1), LastTransition: at(2),
			},
		},
		"container first seen after its end": {
			policy: kubernetes(),
			steps:  []step{stopped(2, "a", "")},
			want:   []streak.Transition{{From: none, To: failed, Message: "the container is not running", At: at(2)}},
			final:  streak.State{State: failed, Message: "the container is not running", LastTransition: at(2)},
		},
		"outcome after the end of the container": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), stopped(1, "a", ""), success(2, "late")},
			want:   []streak.Transition{{From: none, To: failed, Message: "the container is not running", At: at(1)}},
			final:  streak.State{State: failed, Message: "the container is not running", LastTransition: at(1)},
		},
		"restart resets state and count": {
			policy: kubernetes(),
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				running(4, "b", 4), failure(5, "1"), failure(6, "2"), failure(7, "3"),
			},
			want: []streak.Transition{
				{From: none, To: succeeded, Message: "ok", At: at(1)},
				{From: succeeded, To: unknown, Message: "the container is new: no result yet", At: at(4)},
				{From: unknown, To: failed, Message: "3", At: at(7)},
			},
			final: streak.State{State: failed, Message: "3", LastProbe: at(7), LastTransition: at(7)},
			due:   at(4),
		},
		"restart before the first result": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), failure(1, "no"), failure(2, "no"), running(3, "b", 3), failure(4, "no")},
			due:    at(3),
		},
		"crash loop": {
			policy: kubernetes(),
			steps:  []step{stopped(1, "a", "exited with code 1"), stopped(5, "b", "exited with code 2")},
			want: []streak.Transition{
				{From: none, To: failed, Message: "the container is not running: exited with code 1", At: at(1)},
			},
			final: streak.State{
				State: failed, Message: "the container is not running: exited with code 2", LastTransition: at(1),
			},
		},
		"container starts after it was created": {
			policy: kubernetes(),
			steps:  []step{stopped(1, "a", "created"), running(2, "a", 2)},
			want: []streak.Transition{
				{From: none, To: failed, Message: "the container is not running: created", At: at(1)},
				{From: failed, To: unknown, Message: "the container is new: no result yet", At: at(2)},
			},
			final: streak.State{State: unknown, Message: "the container is new: no result yet", LastTransition: at(2)},
			due:   at(2),
		},
		"same container again": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), success(1, "ok"), running(2, "a", 0)},
			want:   []streak.Transition{{From: none, To: succeeded, Message: "ok", At: at(1)}},
			final:  streak.State{State: succeeded, Message: "ok", LastProbe: at(1), LastTransition: at(1)},
			due:    at(0),
		},
		"container that has never run": {
			policy: kubernetes(),
			steps:  []step{gone(1), gone(5), gone(100_000)},
		},
		"container runs after a long start": {
			policy: kubernetes(),
			steps:  []step{gone(1), gone(3600), running(7200, "a", 7200), success(7201, "idle")},
			want:   []streak.Transition{{From: none, To: succeeded, Message: "idle", At: at(7201)}},
			final:  streak.State{State: succeeded, Message: "idle", LastProbe: at(7201), LastTransition: at(7201)},
			due:    at(7200),
		},
		"crash loop with removed containers": {
			policy: kubernetes(),
			steps:  []step{stopped(1, "a", "exited with code 1"), gone(3), gone(8), stopped(10, "b", "exited with code 1")},
			want: []streak.Transition{
				{From: none, To: failed, Message: "the container is not running: exited with code 1", At: at(1)},
			},
			final: streak.State{
				State: failed, Message: "the container is not running: exited with code 1", LastTransition: at(1),
			},
		},
		"edit before the container has run": {
			policy: kubernetes(),
			steps:  []step{gone(1), edited(2, kubernetes()), gone(60)},
		},
		"edit after the container was removed, container runs again": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), gone(1), edited(2, kubernetes()), gone(60), running(70, "b", 70)},
			want: []streak.Transition{
				{From: none, To: failed, Message: messageGone, At: at(1)},
				{From: failed, To: unknown, Message: "the container is new: no result yet", At: at(70)},
			},
			final: streak.State{State: unknown, Message: "the container is new: no result yet", LastTransition: at(70)},
			due:   at(70),
		},
		"container removed": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), gone(1), gone(2)},
			want:   []streak.Transition{{From: none, To: failed, Message: messageGone, At: at(1)}},
			final:  streak.State{State: failed, Message: messageGone, LastTransition: at(1)},
		},
		"edit after the container was removed": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), gone(1), edited(2, kubernetes())},
			want:   []streak.Transition{{From: none, To: failed, Message: messageGone, At: at(1)}},
			final:  streak.State{State: failed, Message: messageGone, LastTransition: at(1)},
		},
		"restored, same container": {
			policy: kubernetes(), start: reported(succeeded),
			steps: []step{running(0, "a", -900), failure(1, "no"), failure(2, "no")},
			final: reported(succeeded),
			due:   at(0),
		},
		"restored, container restarted": {
			policy: kubernetes(), start: reported(succeeded),
			steps: []step{running(0, "b", -30)},
			want: []streak.Transition{
				{From: succeeded, To: unknown, Message: "the container is new: no result yet", At: at(0)},
			},
			final: streak.State{
				State: unknown, Message: "the container is new: no result yet",
				LastProbe: at(-60), LastTransition: at(0),
			},
			due: at(0),
		},
		"restored, container started within the second of the report": {
			policy: kubernetes(), start: reported(succeeded),
			steps: []step{running(0, "a", -59.1)},
			final: reported(succeeded),
			due:   at(0),
		},
		"restored, transition newer than last probe": {
			policy: kubernetes(),
			start:  streak.State{State: failed, Message: "reported", LastProbe: at(-60), LastTransition: at(-20)},
			steps:  []step{running(0, "a", -30)},
			final:  streak.State{State: failed, Message: "reported", LastProbe: at(-60), LastTransition: at(-20)},
			due:    at(0),
		},
		"restored without times": {
			policy: kubernetes(), start: streak.State{State: succeeded},
			steps: []step{running(0, "a", -30), failure(1, "no")},
			final: streak.State{State: succeeded},
			due:   at(0),
		},
		"restored, container removed": {
			policy: kubernetes(), start: reported(succeeded),
			steps: []step{gone(1)},
			want:  []streak.Transition{{From: succeeded, To: failed, Message: messageGone, At: at(1)}},
			final: streak.State{State: failed, Message: messageGone, LastProbe: at(-60), LastTransition: at(1)},
		},
		"edit keeps the state until a result of the new probe": {
			policy: kubernetes(),
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"), edited(4, kubernetes()),
				failure(5, "3"), failure(6, "4"),
			},
			want:  []streak.Transition{{From: none, To: succeeded, Message: "ok", At: at(1)}},
			final: streak.State{State: succeeded, Message: "ok", LastProbe: at(1), LastTransition: at(1)},
			due:   at(4),
		},
		"counts start at zero after an edit": {
			policy: kubernetes(),
			steps: []step{
				running(0, "a", 0), success(1, "ok"), failure(2, "1"), failure(3, "2"),
				edited(4, streak.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 2}),
				failure(5, "3"), failure(6, "4"),
			},
			want: []streak.Transition{
				{From: none, To: succeeded, Message: "ok", At: at(1)},
				{From: succeeded, To: failed, Message: "4", At: at(6)},
			},
			final: streak.State{State: failed, Message: "4", LastProbe: at(6), LastTransition: at(6)},
			due:   at(4),
		},
		"restored state of an edited probe": {
			policy: kubernetes(), start: reported(succeeded),
			steps: []step{edited(0, kubernetes()), running(1, "a", -900), failure(2, "no")},
			final: reported(succeeded),
			due:   at(1),
		},
		"edit before the first result": {
			policy: kubernetes(),
			steps:  []step{running(0, "a", 0), edited(4, kubernetes())},
			due:    at(4),
		},
		"edit after the container stopped": {
			policy: kubernetes(),
			steps:  []step{stopped(0, "a", ""), edited(4, kubernetes())},
			want:   []streak.Transition{{From: none, To: failed, Message: "the container is not running", At: at(0)}},
			final:  streak.State{State: failed, Message: "the container is not running", LastTransition: at(0)},
		},
		"initial delay": {
			policy: streak.Policy{InitialDelay: 30 * time.Second, Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
			steps:  []step{running(10, "a", 5)},
			due:    at(35),
		},
		"initial delay edited": {
			policy: streak.Policy{InitialDelay: 30 * time.Second, Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
			steps:  []step{running(10, "a", 5), edited(11, kubernetes())},
			due:    at(11),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			evaluator := streak.Restore(tc.policy, streak.Phase{}, tc.start)
			var got []streak.Transition
			for _, s := range tc.steps {
				if transition, changed := s(evaluator); changed {
					got = append(got, transition)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("transitions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.final, evaluator.State(), cmpopts.IgnoreFields(streak.State{}, "ContainerID")); diff != "" {
				t.Errorf("final state (-want +got):\n%s", diff)
			}
			if due, _ := evaluator.Due(); !due.Equal(tc.due) {
				t.Errorf("Due() = %s, want %s", due, tc.due)
			}
		})
	}
}
