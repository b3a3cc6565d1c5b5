// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Messages of states that are not the result of an outcome.
const (
	messageNewContainer = "the container is new: no result yet"
	messageNotRunning   = "the container is not running"
	reasonGone          = "it does not exist"
)

// ContainerChanged handles a new or changed run of the container. A new run starts from
// Unknown without counted outcomes, and a run that has ended is Failed immediately. A probe
// without a result has no state while its container runs.
func (e *Evaluator) ContainerChanged(now time.Time, c ContainerRun) (Transition, bool) {
	fresh := e.isFresh(now, c)
	resumed := e.restored || e.container.ID == ""
	// A run without a result gets its first one immediately, also after an agent restart.
	continued := e.restored && !fresh && e.state.State != "" && e.state.State != v1alpha1.ProbeUnknown
	e.container, e.restored, e.moved = c, false, false
	e.state.ContainerID = ShortID(c.ID)
	if fresh {
		e.reset()
	}
	if !c.Running {
		e.next = time.Time{}
		e.reset()
		return e.become(now, v1alpha1.ProbeFailed, notRunning(c.Reason))
	}
	if fresh || resumed {
		e.started = startOf(now, c)
		e.schedule(now)
	}
	if continued {
		e.next = e.next.Add(e.phase.until(e.next, e.policy.Period))
	}
	if fresh && e.state.State != "" {
		return e.become(now, v1alpha1.ProbeUnknown, messageNewContainer)
	}
	return Transition{}, false
}

// isFresh reports whether c is a different run than the one that the state belongs to. A
// container that starts to run is fresh even if its ID is known: it was created earlier.
//
// A state that moved from another container belongs to every run. If the report of a restored
// state has no ID, times decide. Reported times are whole seconds: a run that started within
// the second of the report counts as the reported one. If the report has no times, or
// the wall clock was set back since the start, every run counts as the reported one, so that
// the state is not discarded without evidence.
func (e *Evaluator) isFresh(now time.Time, c ContainerRun) bool {
	switch {
	case e.moved:
		return false
	case e.restored && e.state.ContainerID != "":
		return ShortID(c.ID) != e.state.ContainerID
	case e.restored:
		reported := e.state.LastTransition
		if e.state.LastProbe.After(reported) {
			reported = e.state.LastProbe
		}
		if reported.IsZero() || c.StartedAt.After(now) {
			return false
		}
		return c.StartedAt.Truncate(time.Second).After(reported)
	}
	return c.ID != e.container.ID || c.Running && !e.container.Running
}

// ContainerGone handles a container that the runtime does not have. The probe is Failed if
// the container ran before, which a restored state also proves. A container that has never
// run has not failed: its image may still be pulled, or its volumes mounted.
func (e *Evaluator) ContainerGone(now time.Time) (Transition, bool) {
	if e.container.ID == "" && !e.restored {
		return Transition{}, false
	}
	e.container, e.restored, e.moved, e.next = ContainerRun{}, false, false, time.Time{}
	e.reset()
	return e.become(now, v1alpha1.ProbeFailed, notRunning(reasonGone))
}

// Move gives a new evaluator the state of the same probe in another container. The state
// stays until outcomes in the new container reach a threshold, or until that container ends.
func (e *Evaluator) Move(state State) {
	state.ContainerID, state.Problem = "", Problem{}
	e.state, e.restored, e.moved = state, false, state.State != ""
}

// Edited applies an edit of the probe. The state stays until outcomes of the edited probe
// reach a threshold; earlier outcomes do not count. The probe is due immediately, or after
// the new initial delay, and then with the new period.
func (e *Evaluator) Edited(now time.Time, policy Policy) {
	e.policy = policy
	e.reset()
	if e.container.Running {
		e.schedule(now)
	}
}

// schedule makes the probe due as soon as it may run.
func (e *Evaluator) schedule(now time.Time) {
	e.next = now
	if ready := e.started.Add(e.policy.InitialDelay); ready.After(now) {
		e.next = ready
	}
}

// startOf returns when a run of the container started, on the monotonic clock of now. The
// runtime reports it on the wall clock, which may be set at any time, so the two are compared
// only once. A start in the future counts as now.
func startOf(now time.Time, c ContainerRun) time.Time {
	if c.StartedAt.IsZero() {
		return time.Time{}
	}
	return now.Add(-max(now.Sub(c.StartedAt), 0))
}

func notRunning(reason string) string {
	if reason == "" {
		return messageNotRunning
	}
	return messageNotRunning + ": " + reason
}
