// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak

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
	fresh := e.isFresh(c)
	resumed := e.restored || e.container.ID == ""
	e.container, e.restored = c, false
	if fresh {
		e.reset()
	}
	if !c.Running {
		e.next = time.Time{}
		e.reset()
		return e.become(now, v1alpha1.ProbeFailed, notRunning(c.Reason))
	}
	if fresh || resumed {
		e.schedule(now)
	}
	if fresh && e.state.State != "" {
		return e.become(now, v1alpha1.ProbeUnknown, messageNewContainer)
	}
	return Transition{}, false
}

// isFresh reports whether c is a different run than the one that the state belongs to. A
// container that starts to run is fresh even if its ID is known: it was created earlier.
//
// A restored state has no ID, so times decide. Reported times are whole seconds: a run that
// started within the second of the report counts as the reported one. If the report has no
// times, every run counts as the reported one, so that the state is not discarded without
// evidence.
func (e *Evaluator) isFresh(c ContainerRun) bool {
	if e.restored {
		reported := e.state.LastTransition
		if e.state.LastProbe.After(reported) {
			reported = e.state.LastProbe
		}
		if reported.IsZero() {
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
	e.container, e.restored, e.next = ContainerRun{}, false, time.Time{}
	e.reset()
	return e.become(now, v1alpha1.ProbeFailed, notRunning(reasonGone))
}

// Edited applies an edit of the probe. The state stays until outcomes of the edited probe
// reach a threshold; earlier outcomes do not count. The probe is due immediately, or after
// the new initial delay, and then with the new period.
func (e *Evaluator) Edited(now time.Time, policy Policy) {
	e.policy, e.notBefore = policy, time.Time{}
	e.reset()
	if e.container.Running {
		e.schedule(now)
	}
}

// schedule makes the probe due as soon as it may run.
func (e *Evaluator) schedule(now time.Time) {
	e.next = now
	for _, bound := range []time.Time{e.notBefore, e.container.StartedAt.Add(e.policy.InitialDelay)} {
		if bound.After(e.next) {
			e.next = bound
		}
	}
}

func notRunning(reason string) string {
	if reason == "" {
		return messageNotRunning
	}
	return messageNotRunning + ": " + reason
}
