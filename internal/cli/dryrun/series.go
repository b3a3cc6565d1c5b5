// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// MaxKept is the maximum number of runs, and of transitions, that a series keeps.
const MaxKept = 100

// Series is what repeated runs of one probe led to.
type Series struct {
	// RunCount is how many runs ended. DroppedRuns is how many of them, the oldest, are not in Runs.
	RunCount    int `json:"runCount"`
	DroppedRuns int `json:"droppedRuns,omitempty"`
	// Runs are the newest runs, oldest first.
	Runs []Run `json:"runs,omitempty"`
	// TransitionCount is how often the state changed. DroppedTransitions is how many of the changes,
	// the oldest, are not in Transitions.
	TransitionCount    int `json:"transitionCount"`
	DroppedTransitions int `json:"droppedTransitions,omitempty"`
	// Transitions are the newest changes of the state, oldest first.
	Transitions []Transition `json:"transitions,omitempty"`
	// Streak is how many results equal to StreakResult, Succeeded or Failed, there were in a row at
	// the end.
	Streak       int    `json:"streak,omitempty"`
	StreakResult string `json:"streakResult,omitempty"`
}

// Run is one run of a series.
type Run struct {
	// Time is when the run ended.
	Time time.Time `json:"time"`
	// Result is Succeeded or Failed, or empty if the run has no result.
	Result v1alpha1.ProbeState `json:"result,omitempty"`
	// Message is the message of the run, or why it has no result.
	Message string `json:"message,omitempty"`
	// Seconds is how long the run took.
	Seconds float64 `json:"seconds"`
	// TimedOut is whether it exceeded its timeout.
	TimedOut bool `json:"timedOut,omitempty"`
	// Streak is how many equal results there were in a row with this one, and Threshold how many the
	// state needs. Both are 0 if the run has no result.
	Streak    int `json:"streak,omitempty"`
	Threshold int `json:"threshold,omitempty"`
	// State is the state after the run. It is empty if no result reached its threshold yet.
	State v1alpha1.ProbeState `json:"state,omitempty"`
	// Changed is whether the run changed the state.
	Changed bool `json:"changed,omitempty"`
}

// Transition is one change of state.
type Transition struct {
	// Time is when the state changed.
	Time time.Time `json:"time"`
	// From is empty for the first state.
	From v1alpha1.ProbeState `json:"from,omitempty"`
	// To is the new state.
	To v1alpha1.ProbeState `json:"to"`
	// Message is the message of the new state.
	Message string `json:"message,omitempty"`
}

// SetOutcome sets the result of the run. The count is how many equal outcomes there were in a row.
func (r *Run) SetOutcome(outcome probing.Outcome, count int, policy thresholds.Policy) {
	r.Result, r.Threshold = v1alpha1.ProbeFailed, policy.FailureThreshold
	if outcome.Success {
		r.Result, r.Threshold = v1alpha1.ProbeSucceeded, policy.SuccessThreshold
	}
	r.Message, r.TimedOut, r.Streak = outcome.Message, outcome.TimedOut, count
}

// Add adds a run, and the transition to which it led, or nil. A run without a result does not end
// the streak.
func (s *Series) Add(run Run, transition *thresholds.Transition) {
	s.RunCount++
	run.Time, run.Changed = run.Time.Truncate(time.Millisecond), transition != nil
	if run.Result != "" {
		s.Streak, s.StreakResult = run.Streak, string(run.Result)
	}
	s.Runs = newest(append(s.Runs, run))
	s.DroppedRuns = s.RunCount - len(s.Runs)
	if transition == nil {
		return
	}
	s.TransitionCount++
	s.Transitions = newest(append(s.Transitions, Transition{
		Time: transition.At.Truncate(time.Millisecond), From: transition.From, To: transition.To, Message: transition.Message,
	}))
	s.DroppedTransitions = s.TransitionCount - len(s.Transitions)
}

// newest removes the oldest items above the limit.
func newest[T any](items []T) []T {
	if drop := len(items) - MaxKept; drop > 0 {
		return append(items[:0], items[drop:]...)
	}
	return items
}

// RunOf returns the run of the container that the pod reports. It returns false if the container has
// never run.
func RunOf(pod *corev1.Pod, container string) (thresholds.ContainerRun, bool) {
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if status.Name != container {
			continue
		}
		switch state := status.State; {
		case state.Running != nil:
			return thresholds.ContainerRun{ID: status.ContainerID, Running: true, StartedAt: state.Running.StartedAt.Time}, true
		case state.Terminated != nil:
			return ended(status.ContainerID, state.Terminated), true
		case status.LastTerminationState.Terminated != nil:
			return ended(status.ContainerID, status.LastTerminationState.Terminated), true
		}
	}
	return thresholds.ContainerRun{}, false
}

func ended(id string, state *corev1.ContainerStateTerminated) thresholds.ContainerRun {
	run := thresholds.ContainerRun{ID: id, StartedAt: state.StartedAt.Time, Reason: fmt.Sprintf("exited with code %d", state.ExitCode)}
	if state.Reason != "" && state.Reason != "Completed" && state.Reason != "Error" {
		run.Reason += " (" + state.Reason + ")"
	}
	return run
}

// Once returns the state of a probe whose outcome takes effect at once, whatever its thresholds
// are. The outcome of a container that has ended does not count.
func Once(now time.Time, run thresholds.ContainerRun, outcome probing.Outcome) thresholds.State {
	evaluator := thresholds.New(thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1}, thresholds.Phase{})
	evaluator.ContainerChanged(now, run)
	evaluator.Outcome(now, outcome)
	return evaluator.State()
}
