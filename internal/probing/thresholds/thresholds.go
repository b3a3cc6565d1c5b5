// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package thresholds evaluates one probe: it turns outcomes and container changes into state
// transitions, as the kubelet does for its own probes. A state changes only after a streak,
// a number of equal outcomes in a row.
//
// The Evaluator has no clock and no goroutine: every method takes the current time, and Due
// returns when to call the evaluator next. Its invariants:
//
//   - the state changes only if a streak reaches its threshold or the container changes;
//     an edit of the probe keeps it;
//   - a streak contains only outcomes of one run of the container and one version of the
//     probe;
//   - the probe of a container that has ended is Failed and is not run; a container that has
//     never run does not change the state, however long its start takes;
//   - a probe that has never had a result has no state.
package thresholds

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
)

// Policy is how a probe is timed and evaluated.
type Policy struct {
	// InitialDelay is the time from the start of the container to the first run.
	InitialDelay time.Duration
	// Period is the time between the starts of two runs. It is positive.
	Period time.Duration
	// SuccessThreshold is how many successes in a row lead to Succeeded, at least 1.
	SuccessThreshold int
	// FailureThreshold is how many failures in a row lead to Failed, at least 1.
	FailureThreshold int
}

// PolicyOf returns the policy of a planned probe, whose defaults are resolved. It raises a
// period or threshold below 1 to 1, so that an invalid plan cannot cause a busy loop or a
// division by zero.
func PolicyOf(spec *corev1.Probe) Policy {
	return Policy{
		InitialDelay:     time.Duration(max(spec.InitialDelaySeconds, 0)) * time.Second,
		Period:           time.Duration(max(spec.PeriodSeconds, 1)) * time.Second,
		SuccessThreshold: int(max(spec.SuccessThreshold, 1)),
		FailureThreshold: int(max(spec.FailureThreshold, 1)),
	}
}

// PlannedPolicy is like PolicyOf, with the fields in milliseconds, which override those in
// seconds.
func PlannedPolicy(spec *v1alpha1.ContainerProbeSpec) Policy {
	policy := PolicyOf(&spec.Probe)
	policy.Period = overridden(spec, spec.PeriodMilliseconds, policy.Period)
	return policy
}

// PlannedTimeout returns the time limit of one run of a planned probe, whose defaults are resolved.
func PlannedTimeout(spec *v1alpha1.ContainerProbeSpec) time.Duration {
	return overridden(spec, spec.TimeoutMilliseconds, time.Duration(spec.TimeoutSeconds)*time.Second)
}

// overridden returns the time in milliseconds if it is set, and otherwise the one in seconds. It
// raises a value that the CRD refuses, so that an invalid plan cannot cause a busy loop.
func overridden(spec *v1alpha1.ContainerProbeSpec, milliseconds int32, seconds time.Duration) time.Duration {
	if milliseconds <= 0 {
		return seconds
	}
	least := int32(v1alpha1.MinMilliseconds)
	if spec.Exec != nil {
		least = v1alpha1.MinExecMilliseconds
	}
	return time.Duration(max(milliseconds, least)) * time.Millisecond
}

// ContainerRun is one run of the probed container.
type ContainerRun struct {
	// ID is the runtime's ID of this run. It changes with every restart.
	ID string
	// Running reports whether the process runs.
	Running bool
	// StartedAt is when the process started.
	StartedAt time.Time
	// Reason is why the process does not run. It is empty if unknown.
	Reason string
	// Pod is the namespace and name of the pod in the runtime, which those of the plan must equal. It is empty
	// for a container that no kubelet runs.
	Pod types.NamespacedName
}

// State is the state of a probe.
type State struct {
	// State is empty until the first result.
	State v1alpha1.ProbeState
	// Message is the message of the newest outcome that agrees with State. If no outcome
	// led to State, Message is the cause.
	Message string
	// LastProbe is when the newest outcome arrived that led to State or Message. It is zero
	// if there was none. Outcomes that change neither do not change it.
	LastProbe time.Time
	// LastTransition is when State last changed.
	LastTransition time.Time
	// ContainerID is the ID of the run of the container that State belongs to, as ShortID
	// returns it. It is empty if unknown.
	ContainerID string
	// Problem is why the probe has no current result. It is empty if there is none.
	Problem Problem
}

// Transition is one change of state.
type Transition struct {
	// From is empty for a probe's first result.
	From v1alpha1.ProbeState
	// To is the new state.
	To v1alpha1.ProbeState
	// Message is the message or cause of the new state.
	Message string
	// At is when the state changed.
	At time.Time
}

// shortID is the length of the IDs that tools for container runtimes show.
const shortID = 13

// ShortID returns the first 13 bytes of the ID of a container, which identify it on its node.
func ShortID(id string) string { return id[:min(len(id), shortID)] }

// Evaluator evaluates one probe of one container. It is not safe for concurrent use.
// Methods that may change the state return the transition, and false if there was none.
type Evaluator struct {
	policy Policy
	phase  Phase
	// container is the newest known run of the container. Its ID is empty if there is none.
	container ContainerRun
	// started is when the container started, on the monotonic clock.
	started time.Time
	// restored is set while the state comes from a report and has not been matched to a
	// run of the container.
	restored bool
	// moved is set while the state comes from the same probe in another container.
	moved bool
	state State
	// last and count are the newest outcome and how often it occurred in a row.
	last  bool
	count int
	// next is when the probe is due. It is zero while the container does not run.
	next time.Time
}

// New returns the evaluator of a probe that has no state. The probe is due as soon as its
// container runs and its delay has passed.
func New(policy Policy, phase Phase) *Evaluator {
	return &Evaluator{policy: policy, phase: phase}
}

// Restore returns the evaluator of a probe whose state was reported before an agent
// restart. The probe keeps the state until its first transition. It continues in its phase
// if the state is that of a result.
func Restore(policy Policy, phase Phase, state State) *Evaluator {
	return &Evaluator{policy: policy, phase: phase, state: state, restored: state.State != "" || state.Problem.Reason != ""}
}

// State returns the current state.
func (e *Evaluator) State() State { return e.state }

// Container returns the run of the container that outcomes apply to. Its ID is empty if
// there is none.
func (e *Evaluator) Container() ContainerRun { return e.container }

// Streak returns the newest outcome and how often it occurred in a row. The count is 0 if
// there was no outcome since the container or the probe changed.
func (e *Evaluator) Streak() (success bool, count int) { return e.last, e.count }

// Due returns when the next run of the probe is due. It returns false while the container
// does not run.
func (e *Evaluator) Due() (time.Time, bool) { return e.next, !e.next.IsZero() }

// Begin records that a run starts at now and moves Due to the next time of the schedule,
// which continues from the previous due time in steps of one period, a little longer until
// the runs are in their phase. It skips times that have passed: a run that takes longer than
// the period is followed by one run, not by all that it delayed.
func (e *Evaluator) Begin(now time.Time) {
	if e.next.IsZero() || now.Before(e.next) {
		return
	}
	passed := now.Sub(e.next) / e.policy.Period
	e.next = e.next.Add((passed + 1) * e.policy.Period)
	e.next = e.next.Add(e.phase.approach(e.next, e.policy.Period))
}

// Outcome evaluates an outcome for the run that Container returns. It ignores outcomes
// that arrive after the container has stopped.
func (e *Evaluator) Outcome(now time.Time, outcome probing.Outcome) (Transition, bool) {
	if !e.container.Running {
		return Transition{}, false
	}
	if e.count > 0 && e.last == outcome.Success {
		e.count++
	} else {
		e.last, e.count = outcome.Success, 1
	}
	to, threshold := v1alpha1.ProbeFailed, e.policy.FailureThreshold
	if outcome.Success {
		to, threshold = v1alpha1.ProbeSucceeded, e.policy.SuccessThreshold
	}
	if e.count < threshold && e.state.State != to {
		return Transition{}, false
	}
	if e.state.State != to || e.state.Message != outcome.Message {
		e.state.LastProbe = now
	}
	return e.become(now, to, outcome.Message)
}

// become sets the message and the state. It returns false if the state is the same.
func (e *Evaluator) become(now time.Time, to v1alpha1.ProbeState, message string) (Transition, bool) {
	e.state.Message = message
	if e.state.State == to {
		return Transition{}, false
	}
	transition := Transition{From: e.state.State, To: to, Message: message, At: now}
	e.state.State, e.state.LastTransition = to, now
	return transition, true
}

// reset discards the current streak and the problem.
func (e *Evaluator) reset() { e.last, e.count, e.state.Problem = false, 0, Problem{} }

// Problem is a problem of a probe that prevents a current result. It does not change the
// state.
type Problem struct {
	// Reason is empty if there is no problem.
	Reason v1alpha1.ProbeErrorReason
	// Message describes the problem. It does not depend on the run.
	Message string
	// Since is when the problem was noticed first, with any message.
	Since time.Time
}

// Troubled records a problem that prevents a current result. It changes neither the state
// nor the streak. An edit of the probe, a new run of the container, or its end clears the
// problem.
func (e *Evaluator) Troubled(now time.Time, reason v1alpha1.ProbeErrorReason, message string) {
	since := now
	if e.state.Problem.Reason == reason {
		since = e.state.Problem.Since
	}
	e.state.Problem = Problem{Reason: reason, Message: message, Since: since}
}

// Untroubled clears the problem.
func (e *Evaluator) Untroubled() { e.state.Problem = Problem{} }

// Phase is the position of a probe's runs within its period. Without it, probes that become
// due at the same time, such as those of a marker that selects many running pods, would run
// at the same instants forever.
//
// The zero Phase has no position of its own: the runs follow the first one.
type Phase struct {
	// Origin is any time, the same for all probes of a process. Its wall clock reading
	// makes the position survive restarts. Its monotonic clock reading protects the
	// schedule from a wall clock that is set later.
	Origin time.Time
	// Offset is the position as a fraction of the period, in [0, 1).
	Offset float64
}

// until returns the time from t to the next run in the phase, less than a period.
func (p Phase) until(t time.Time, period time.Duration) time.Duration {
	if p.Origin.IsZero() {
		return 0
	}
	first := time.Duration(p.Offset*float64(period)) - time.Duration(p.Origin.UnixNano()%int64(period))
	wait := (first - t.Sub(p.Origin)) % period
	if wait < 0 {
		wait += period
	}
	return wait
}

// approach returns the time to add to t, when the next run would be due, so that the runs
// reach the phase after a few periods. It never shortens a period, because thresholds count
// on it, and extends it by at most half.
func (p Phase) approach(t time.Time, period time.Duration) time.Duration {
	const last = 8 // Parts of a period that are added in one step.
	wait := p.until(t, period)
	if wait <= period/last {
		return wait
	}
	return wait / 2
}
