// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func compile(t *testing.T, m *v1alpha1.PodProbeMarker) *plan.Marker {
	t.Helper()
	compiled, err := plan.Compile(m)
	expect.NoError(t, err)
	return compiled
}

func TestSelects(t *testing.T) {
	matching := func() *builders.PodBuilder { return builders.Pod("games", "game-0").Label("app", "game") }
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		marker *v1alpha1.PodProbeMarker
		want   string
	}{
		"selected":        {pod: matching().Build()},
		"another label":   {pod: builders.Pod("games", "game-0").Label("app", "web").Build(), want: `requires "app=game" (the label is "web")`},
		"no label":        {pod: builders.Pod("games", "game-0").Build(), want: `requires "app=game" (the pod has no label app)`},
		"not bound":       {pod: matching().Node("").Build(), want: "not bound"},
		"not initialized": {pod: matching().Initialized(corev1.ConditionFalse).Build(), want: "not initialized"},
		"terminating":     {pod: matching().Terminating().Build(), want: "terminating"},
		"ended":           {pod: matching().Phase(corev1.PodSucceeded).Build(), want: "its phase is Succeeded"},
		"marker deleted":  {pod: matching().Build(), marker: builders.Marker("games", "game").Deleting().Build(), want: "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.marker == nil {
				test.marker = builders.Marker("games", "game").Build()
			}
			_, err := dryrun.New(test.pod, compile(t, test.marker), nil)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("New() returned the error %v, want %q", err, test.want)
			}
		})
	}
}

// owned are the managed fields of the label role and the condition game.io/idle.
const owned = `{"f:metadata":{"f:labels":{"f:role":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:status":{},"f:type":{}}}}}`

func TestEffect(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("games", "game-0").Label("app", "game") }
	marked := pod().Label("role", "idle").Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}).
		ManagedFields(v1alpha1.FieldManager, "status", owned).Build()
	idle := builders.Probe("idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "role", "idle").Annotation(v1alpha1.ProbeFailed, "why", "busy")
	for name, test := range map[string]struct {
		pod           *corev1.Pod
		state         v1alpha1.ProbeState
		others        []*v1alpha1.PodProbeMarker
		marks, change string
		lost          string
		event         string
	}{
		"new marks": {
			pod: pod().Build(), state: v1alpha1.ProbeSucceeded, marks: "game.io/idle=True role=idle",
			change: "+game.io/idle=True +role=idle", event: "KruiseProbeSucceeded",
		},
		"same marks": {pod: marked, state: v1alpha1.ProbeSucceeded, marks: "game.io/idle=True role=idle", event: "KruiseProbeSucceeded"},
		"changed marks": {
			pod: marked, state: v1alpha1.ProbeFailed, marks: "why=busy game.io/idle=False",
			change: "+why=busy game.io/idle=True->False -role=idle", event: "KruiseProbeFailed",
		},
		"unknown":  {pod: marked, state: v1alpha1.ProbeUnknown, marks: "game.io/idle=Unknown", change: "game.io/idle=True->Unknown -role=idle"},
		"no state": {pod: marked},
		"value of a template": {
			pod: pod().Label("role", "idle").Build(), state: v1alpha1.ProbeFailed, marks: "why=busy game.io/idle=False",
			change: "+why=busy +game.io/idle=False -role=idle", event: "KruiseProbeFailed",
		},
		"value of another manager": {
			pod: pod().Label("role", "lead").Build(), state: v1alpha1.ProbeSucceeded, marks: "game.io/idle=True role=idle",
			change: "+game.io/idle=True role=lead->idle", event: "KruiseProbeSucceeded",
		},
		"key of another marker": {
			pod: pod().Build(), state: v1alpha1.ProbeSucceeded,
			others: []*v1alpha1.PodProbeMarker{builders.Marker("games", "early").Probe(builders.Probe("zone").Label(
				v1alpha1.ProbeSucceeded, "role", "zone",
			)).Build()},
			marks: "game.io/idle=True", change: "+game.io/idle=True", lost: "role of early#zone", event: "KruiseProbeSucceeded",
		},
		"older version of the marker": {
			pod: pod().Build(), state: v1alpha1.ProbeSucceeded,
			others: []*v1alpha1.PodProbeMarker{builders.Marker("games", "game").Probe(builders.Probe("old").Label(v1alpha1.ProbeSucceeded, "role", "old")).Build()},
			marks:  "game.io/idle=True role=idle", change: "+game.io/idle=True +role=idle", event: "KruiseProbeSucceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var others []*plan.Marker
			for _, other := range test.others {
				others = append(others, compile(t, other))
			}
			tried, err := dryrun.New(test.pod, compile(t, builders.Marker("games", "game").Probe(idle).Build()), others)
			expect.NoError(t, err)
			effect := tried.Effect(tried.Probes[0], thresholds.State{State: test.state, Message: "message"})
			var marks, changes, lost []string
			for _, m := range effect.Marks {
				marks = append(marks, m.String())
			}
			for _, c := range effect.Changes {
				changes = append(changes, c.String())
			}
			for _, l := range effect.Lost {
				lost = append(lost, l.Name+" of "+l.Owner)
			}
			got := []string{strings.Join(marks, " "), strings.Join(changes, " "), strings.Join(lost, " "), ""}
			if effect.Event != nil {
				got[3] = effect.Event.Reason
			}
			expect.Equal(t, "marks, changes, lost marks, event", []string{test.marks, test.change, test.lost, test.event}, got)
		})
	}
}

func TestOnce(t *testing.T) {
	with := func(status corev1.ContainerStatus) *corev1.Pod {
		pod := builders.Pod("games", "game-0").Build()
		status.Name = "main"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		return pod
	}
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		started bool
		want    thresholds.State
	}{
		"running": {
			pod: with(corev1.ContainerStatus{
				ContainerID: "a", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}), started: true, want: thresholds.State{State: v1alpha1.ProbeSucceeded, Message: "ok"},
		},
		"ended": {
			pod: with(corev1.ContainerStatus{ContainerID: "a", State: corev1.ContainerState{Terminated: killed}}), started: true,
			want: thresholds.State{State: v1alpha1.ProbeFailed, Message: "the container is not running: exited with code 137 (OOMKilled)"},
		},
		"crash loop": {
			pod: with(corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: killed}}), started: true,
			want: thresholds.State{State: v1alpha1.ProbeFailed, Message: "the container is not running: exited with code 137 (OOMKilled)"},
		},
		"waiting":   {pod: with(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}})},
		"no status": {pod: builders.Pod("games", "game-0").Build()},
	} {
		t.Run(name, func(t *testing.T) {
			run, started := dryrun.RunOf(test.pod, "main")
			if started != test.started {
				t.Fatalf("started: %t, want %t", started, test.started)
			}
			if !started {
				return
			}
			got := dryrun.Once(now, run, probing.Outcome{Success: true, Message: "ok"})
			if got.State != test.want.State || got.Message != test.want.Message {
				t.Errorf("Once() = %s %q, want %s %q", got.State, got.Message, test.want.State, test.want.Message)
			}
		})
	}
}

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
		"all kept": {
			runs: 100, transitions: 100, last: failed, want: dryrun.Series{RunCount: 100, TransitionCount: 100, Streak: 2, StreakResult: "Failed"},
		},
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
