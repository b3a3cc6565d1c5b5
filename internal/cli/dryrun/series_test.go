// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

func TestSetOutcome(t *testing.T) {
	policy := streak.Policy{SuccessThreshold: 2, FailureThreshold: 3}
	for name, test := range map[string]struct {
		outcome probe.Outcome
		want    trial.Run
	}{
		"success": {probe.Outcome{Success: true, Message: "ok"}, trial.Run{Result: v1alpha1.ProbeSucceeded, Message: "ok", Streak: 4, Threshold: 2}},
		"failure": {probe.Outcome{Message: "no"}, trial.Run{Result: v1alpha1.ProbeFailed, Message: "no", Streak: 4, Threshold: 3}},
		"timeout": {probe.Outcome{TimedOut: true}, trial.Run{Result: v1alpha1.ProbeFailed, TimedOut: true, Streak: 4, Threshold: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var got trial.Run
			got.SetOutcome(test.outcome, 4, policy)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("run (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeries(t *testing.T) {
	at := func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) }
	failed := trial.Run{Result: v1alpha1.ProbeFailed, Streak: 2, Threshold: 3}
	for name, test := range map[string]struct {
		runs, transitions int
		last              trial.Run
		want              trial.Series
		oldest, change    time.Time
	}{
		"no runs":             {},
		"one run":             {runs: 1, last: failed, want: trial.Series{RunCount: 1, Streak: 2, StreakResult: "Failed"}},
		"run without result":  {runs: 1, want: trial.Series{RunCount: 1}},
		"streak across error": {runs: 2, want: trial.Series{RunCount: 2, Streak: 1, StreakResult: "Succeeded"}},
		"all kept":            {runs: 100, transitions: 100, last: failed, want: trial.Series{RunCount: 100, TransitionCount: 100, Streak: 2, StreakResult: "Failed"}},
		"oldest dropped": {
			runs: 260, transitions: 130, last: failed, oldest: at(160), change: at(160),
			want: trial.Series{RunCount: 260, DroppedRuns: 160, TransitionCount: 130, DroppedTransitions: 30, Streak: 2, StreakResult: "Failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var series trial.Series
			for i := range test.runs {
				run := trial.Run{Result: v1alpha1.ProbeSucceeded, Streak: 1}
				if i == test.runs-1 {
					run = test.last
				}
				run.Time = at(i)
				var transition *streak.Transition
				if i >= test.runs-test.transitions {
					transition = &streak.Transition{To: v1alpha1.ProbeFailed, At: at(i)}
				}
				series.Add(run, transition)
			}
			if n := min(test.runs, trial.MaxKept); len(series.Runs) != n || len(series.Transitions) != min(test.transitions, trial.MaxKept) {
				t.Fatalf("%d runs and %d transitions are kept", len(series.Runs), len(series.Transitions))
			}
			if !test.oldest.IsZero() && (!series.Runs[0].Time.Equal(test.oldest) || !series.Transitions[0].Time.Equal(test.change)) {
				t.Errorf("oldest run at %s, oldest transition at %s", series.Runs[0].Time, series.Transitions[0].Time)
			}
			series.Runs, series.Transitions = nil, nil
			if diff := cmp.Diff(test.want, series); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}
