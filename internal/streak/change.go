// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Messages of states that no outcome made.
const (
	messageNewContainer = "the container is new: no result yet"
	messageNewHandler   = "the probe has changed: no result yet"
	messageNotRunning   = "the container is not running"
	reasonGone          = "it does not exist"
)

// ContainerChanged takes in what the runtime says of the container. A new run of the
// container starts from Unknown with no outcome counted; one that does not run is Failed
// at once. A probe without any result stays without a state until the container has run
// or ended.
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

// isFresh tells whether c is another run of the container than the one that the state
// speaks of. A container that runs after it did not is fresh even under its old ID: it
// was created before and has only now started. Reported times are whole seconds, so a
// container that started within the second of the report is taken for the reported one. So
// is any where the report has no times: a state is not given up on a guess.
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

// StartGrace is how long a planned container may take to exist for the first time before
// its probe is Failed. An ordinary start takes less, and so makes no mark on its way; a
// container whose image can't be had does not run, and the pod says so.
const StartGrace = 10 * time.Second

// ContainerGone takes in that the runtime has no such container. A probe that has seen
// one, or has a reported state, is Failed; any other waits for its container to appear.
func (e *Evaluator) ContainerGone(now time.Time) (Transition, bool) {
	if e.container.ID == "" && !e.restored {
		if e.next.IsZero() && e.state.State == "" {
			e.next = now.Add(StartGrace)
		}
		return Transition{}, false
	}
	return e.missing(now)
}

// Missing takes in that Due has come while the container still does not exist.
func (e *Evaluator) Missing(now time.Time) (Transition, bool) {
	if e.container.ID != "" || e.next.IsZero() || now.Before(e.next) {
		return Transition{}, false
	}
	return e.missing(now)
}

func (e *Evaluator) missing(now time.Time) (Transition, bool) {
	e.container, e.restored, e.next = ContainerRun{}, false, time.Time{}
	e.reset()
	return e.become(now, v1alpha1.ProbeFailed, notRunning(reasonGone))
}

// Edited puts an edit in force: the probe is due at once, or when the new initial delay
// is over, and then at the new period. A changed handler asks another question, so what
// was known is forgotten: the state of a running container becomes Unknown. All other
// edits keep the state, and the outcomes counted so far count on.
func (e *Evaluator) Edited(now time.Time, policy Policy, handlerChanged bool) (Transition, bool) {
	e.policy, e.notBefore = policy, time.Time{}
	if e.container.Running {
		e.schedule(now)
	}
	if !handlerChanged {
		return Transition{}, false
	}
	e.reset()
	if e.state.State == "" || !e.container.Running && !e.restored {
		return Transition{}, false
	}
	return e.become(now, v1alpha1.ProbeUnknown, messageNewHandler)
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
