// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package streak judges one probe: it turns outcomes and container changes into state
// transitions, as the kubelet does for its own probes. A state stands until a whole
// streak of equal outcomes speaks against it.
//
// The judge owns no clock and no goroutine: every method takes the time it happens at,
// and Due says when the probe wants to be run next. Its invariants:
//
//   - the state changes only by a streak that meets its threshold, by a change of the
//     container, or by a change of the handler;
//   - only the outcomes of one container and one handler make up a streak;
//   - a container that does not run is Failed and never run in; one that has never
//     existed is Failed once it has been missing for StartGrace;
//   - a probe that has never had a result has no state.
package streak

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probe"
)

// Policy is how a probe is timed and judged.
type Policy struct {
	// InitialDelay is the time after the container's start before which nothing is
	// probed. Zero probes at once.
	InitialDelay time.Duration
	// Period is the time between the starts of two runs. It is positive.
	Period time.Duration
	// SuccessThreshold is how many successes in a row make Succeeded, at least 1.
	SuccessThreshold int
	// FailureThreshold is how many failures in a row make Failed, at least 1.
	FailureThreshold int
}

// PolicyOf reads the policy of a planned probe, in whose spec every default is resolved.
// A period or threshold below 1 counts as 1, so that a bad plan can't spin or divide.
func PolicyOf(spec *corev1.Probe) Policy {
	return Policy{
		InitialDelay:     time.Duration(max(spec.InitialDelaySeconds, 0)) * time.Second,
		Period:           time.Duration(max(spec.PeriodSeconds, 1)) * time.Second,
		SuccessThreshold: int(max(spec.SuccessThreshold, 1)),
		FailureThreshold: int(max(spec.FailureThreshold, 1)),
	}
}

// ContainerRun is what the judge knows of the container that it probes.
type ContainerRun struct {
	// ID is the runtime's name of this run of the container; a restart has another.
	ID string
	// Running is whether its process runs.
	Running bool
	// StartedAt is when its process started.
	StartedAt time.Time
	// Reason says why it is not running, in words. Empty where unknown.
	Reason string
}

// State is what is known of a probe.
type State struct {
	// State is empty until the first result.
	State v1alpha1.ProbeState
	// Message is that of the newest outcome that agrees with State, or says what made
	// the state where no outcome did.
	Message string
	// LastProbe is when the newest outcome came. Zero if there was none.
	LastProbe time.Time
	// LastTransition is when State last changed.
	LastTransition time.Time
}

// Transition is one change of state.
type Transition struct {
	// From is empty for a probe's first result.
	From v1alpha1.ProbeState
	// To is the state from now on.
	To v1alpha1.ProbeState
	// Message says why.
	Message string
	// At is when the state changed.
	At time.Time
}

// Evaluator evaluates one probe of one container. It is not safe for concurrent use.
type Evaluator struct {
	policy    Policy
	notBefore time.Time
	// container is the newest run of the container seen; its ID is empty before the
	// first and after the container is gone.
	container ContainerRun
	// restored marks a state that was read back and not yet tied to a container.
	restored bool
	state    State
	// last and run are the newest outcome and how often it came in a row.
	last bool
	run  int
	// next is when the probe is due, or its container overdue; zero while it is neither.
	next time.Time
}

// New returns the judge of a probe that has no state. It is not due before notBefore,
// nor before its container is known and runs.
func New(policy Policy, notBefore time.Time) *Evaluator {
	return &Evaluator{policy: policy, notBefore: notBefore}
}

// Restore returns the judge of a probe whose state was reported before, by an agent that
// has been restarted since. The state stands until something speaks against it.
func Restore(policy Policy, notBefore time.Time, state State) *Evaluator {
	return &Evaluator{policy: policy, notBefore: notBefore, state: state, restored: state.State != ""}
}

// State returns what is known now.
func (e *Evaluator) State() State { return e.state }

// Container returns the run of the container that outcomes are judged for. Its ID is
// empty where none is known.
func (e *Evaluator) Container() ContainerRun { return e.container }

// Streak returns the newest outcome that counts, and how often it came in a row: 0 where
// none has come since the container or the handler changed.
func (e *Evaluator) Streak() (success bool, count int) { return e.last, e.run }

// Due returns when the judge wants to be called next: Begin, to run the probe where
// Container runs, Missing where it does not. It returns false while there is nothing to
// wait for.
func (e *Evaluator) Due() (time.Time, bool) { return e.next, !e.next.IsZero() }

// Begin notes that a run starts at now, and moves Due to the next point of the period's
// grid. Points that have passed are skipped, so a run that took longer than the period
// is followed by one run and not by all that it delayed.
func (e *Evaluator) Begin(now time.Time) {
	if e.next.IsZero() || now.Before(e.next) {
		return
	}
	passed := now.Sub(e.next) / e.policy.Period
	e.next = e.next.Add((passed + 1) * e.policy.Period)
}

// Outcome judges one outcome of the container that Container returns. An outcome for a
// container that does not run is ignored: it came too late.
func (e *Evaluator) Outcome(now time.Time, outcome probe.Outcome) (Transition, bool) {
	if !e.container.Running {
		return Transition{}, false
	}
	e.state.LastProbe = now
	if e.run > 0 && e.last == outcome.Success {
		e.run++
	} else {
		e.last, e.run = outcome.Success, 1
	}
	to, threshold := v1alpha1.ProbeFailed, e.policy.FailureThreshold
	if outcome.Success {
		to, threshold = v1alpha1.ProbeSucceeded, e.policy.SuccessThreshold
	}
	if e.run < threshold && e.state.State != to {
		return Transition{}, false
	}
	return e.become(now, to, outcome.Message)
}

// become moves to a state. It reports false where the state is that already.
func (e *Evaluator) become(now time.Time, to v1alpha1.ProbeState, message string) (Transition, bool) {
	e.state.Message = message
	if e.state.State == to {
		return Transition{}, false
	}
	transition := Transition{From: e.state.State, To: to, Message: message, At: now}
	e.state.State, e.state.LastTransition = to, now
	return transition, true
}

// reset forgets the outcomes counted so far.
func (e *Evaluator) reset() { e.last, e.run = false, 0 }
