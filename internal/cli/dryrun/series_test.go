// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSeries(t *testing.T) {
	at := func(i int) time.Time { return now.Add(time.Duration(i) * time.Second) }
	failed := dryrun.Run{Result: v1alpha1.ProbeFailed, Streak: 2, Threshold: 3}
	for name, test := range map[string]struct {
		runs, transitions int
		last              dryrun.Run
		want              dryrun.Series
		oldest, change    time.Time
	}{
		"no runs":             {},
		"one run":             {runs: 1, last: failed, want: dryrun.Series{RunCount: 1, Streak: 2, StreakResult: "Failed"}},
		"run without result":  {runs: 1, want: dryrun.Series{RunCount: 1}},
		"streak across error": {runs: 2, want: dryrun.Series{RunCount: 2, Streak: 1, StreakResult: "Succeeded"}},
		"all kept":            {runs: 100, transitions: 100, last: failed, want: dryrun.Series{RunCount: 100, TransitionCount: 100, Streak: 2, StreakResult: "Failed"}},
		"oldest dropped": {
			runs: 260, transitions: 130, last: failed, oldest: at(160), change: at(160),
			want: dryrun.Series{RunCount: 260, DroppedRuns: 160, TransitionCount: 130, DroppedTransitions: 30, Streak: 2, StreakResult: "Failed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var series dryrun.Series
			for i := range test.runs {
				run := dryrun.Run{Result: v1alpha1.ProbeSucceeded, Streak: 1}
				if i == test.runs-1 {
					run = test.last
				}
				run.Time = at(i)
				var transition *thresholds.Transition
				if i >= test.runs-test.transitions {
					transition = &thresholds.Transition{To: v1alpha1.ProbeFailed, At: at(i)}
				}
				series.Add(run, transition)
			}
			if n := min(test.runs, dryrun.MaxKept); len(series.Runs) != n || len(series.Transitions) != min(test.transitions, dryrun.MaxKept) {
				t.Fatalf("%d runs and %d transitions are kept", len(series.Runs), len(series.Transitions))
			}
			if !test.oldest.IsZero() && (!series.Runs[0].Time.Equal(test.oldest) || !series.Transitions[0].Time.Equal(test.change)) {
				t.Errorf("oldest run at %s, oldest transition at %s", series.Runs[0].Time, series.Transitions[0].Time)
			}
			series.Runs, series.Transitions = nil, nil
			expect.Equal(t, "series", test.want, series)
		})
	}
}
