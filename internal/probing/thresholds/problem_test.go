// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

func TestProblem(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	policy := streak.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1}
	problem := streak.Problem{Reason: v1alpha1.ProbeCannotRun, Message: "not found", Since: start.Add(time.Second)}
	run := streak.ContainerRun{ID: "c1", Running: true, StartedAt: start}
	cases := map[string]struct {
		next func(*streak.Evaluator, time.Time)
		want streak.Problem
	}{
		"stays": {func(*streak.Evaluator, time.Time) {}, problem},
		"again with a different message": {func(e *streak.Evaluator, now time.Time) {
			e.Troubled(now, v1alpha1.ProbeCannotRun, "no shell")
		}, streak.Problem{Reason: v1alpha1.ProbeCannotRun, Message: "no shell", Since: problem.Since}},
		"different reason": {func(e *streak.Evaluator, now time.Time) {
			e.Troubled(now, v1alpha1.ProbeNotEnded, "open")
		}, streak.Problem{Reason: v1alpha1.ProbeNotEnded, Message: "open", Since: start.Add(2 * time.Second)}},
		"outcome": {func(e *streak.Evaluator, now time.Time) { e.Outcome(now, probe.Outcome{}) }, problem},
		"cleared": {next: func(e *streak.Evaluator, _ time.Time) { e.Untroubled() }},
		"container ended": {next: func(e *streak.Evaluator, now time.Time) {
			e.ContainerChanged(now, streak.ContainerRun{ID: "c1", StartedAt: start})
		}},
		"container replaced": {next: func(e *streak.Evaluator, now time.Time) {
			e.ContainerChanged(now, streak.ContainerRun{ID: "c2", Running: true, StartedAt: now})
		}},
		"container gone": {next: func(e *streak.Evaluator, now time.Time) { e.ContainerGone(now) }},
		"edited":         {next: func(e *streak.Evaluator, now time.Time) { e.Edited(now, policy) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := streak.New(policy, streak.Phase{})
			e.ContainerChanged(start, run)
			e.Outcome(start, probe.Outcome{Success: true})
			e.Troubled(problem.Since, problem.Reason, problem.Message)
			if state := e.State().State; state != v1alpha1.ProbeSucceeded {
				t.Errorf("state %q after a problem, want Succeeded", state)
			}
			tc.next(e, start.Add(2*time.Second))
			if diff := cmp.Diff(tc.want, e.State().Problem); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}
