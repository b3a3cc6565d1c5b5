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
func (j *Judge) ContainerChanged(now time.Time, c Container) (Transition, bool) {
	fresh := j.isFresh(c)
	resumed := j.restored || j.container.ID == ""
	j.container, j.restored = c, false
	if fresh {
		j.reset()
	}
	if !c.Running {
		j.next = time.Time{}
		j.reset()
		return j.become(now, v1alpha1.ProbeFailed, notRunning(c.Reason))
	}
	if fresh || resumed {
		j.schedule(now)
	}
	if fresh && j.state.State != "" {
		return j.become(now, v1alpha1.ProbeUnknown, messageNewContainer)
	}
	return Transition{}, false
}

// isFresh tells whether c is another run of the container than the one that the state
// speaks of. A container that runs after it did not is fresh even under its old ID: it
// was created before and has only now started. Reported times are whole seconds, so a
// container that started within the second of the report is taken for the reported one. So
// is any where the report has no times: a state is not given up on a guess.
func (j *Judge) isFresh(c Container) bool {
	if j.restored {
		reported := j.state.LastTransition
		if j.state.LastProbe.After(reported) {
			reported = j.state.LastProbe
		}
		if reported.IsZero() {
			return false
		}
		return c.StartedAt.Truncate(time.Second).After(reported)
	}
	return c.ID != j.container.ID || c.Running && !j.container.Running
}

// StartGrace is how long a planned container may take to exist for the first time before
// its probe is Failed. An ordinary start takes less, and so makes no mark on its way; a
// container whose image can't be had does not run, and the pod says so.
const StartGrace = 10 * time.Second

// ContainerGone takes in that the runtime has no such container. A probe that has seen
// one, or has a reported state, is Failed; any other waits for its container to appear.
func (j *Judge) ContainerGone(now time.Time) (Transition, bool) {
	if j.container.ID == "" && !j.restored {
		if j.next.IsZero() && j.state.State == "" {
			j.next = now.Add(StartGrace)
		}
		return Transition{}, false
	}
	return j.missing(now)
}

// Missing takes in that Due has come while the container still does not exist.
func (j *Judge) Missing(now time.Time) (Transition, bool) {
	if j.container.ID != "" || j.next.IsZero() || now.Before(j.next) {
		return Transition{}, false
	}
	return j.missing(now)
}

func (j *Judge) missing(now time.Time) (Transition, bool) {
	j.container, j.restored, j.next = Container{}, false, time.Time{}
	j.reset()
	return j.become(now, v1alpha1.ProbeFailed, notRunning(reasonGone))
}

// Edited puts an edit in force: the probe is due at once, or when the new initial delay
// is over, and then at the new period. A changed handler asks another question, so what
// was known is forgotten: the state of a running container becomes Unknown. All other
// edits keep the state, and the outcomes counted so far count on.
func (j *Judge) Edited(now time.Time, policy Policy, handlerChanged bool) (Transition, bool) {
	j.policy, j.notBefore = policy, time.Time{}
	if j.container.Running {
		j.schedule(now)
	}
	if !handlerChanged {
		return Transition{}, false
	}
	j.reset()
	if j.state.State == "" || !j.container.Running && !j.restored {
		return Transition{}, false
	}
	return j.become(now, v1alpha1.ProbeUnknown, messageNewHandler)
}

// schedule makes the probe due as soon as it may run.
func (j *Judge) schedule(now time.Time) {
	j.next = now
	for _, bound := range []time.Time{j.notBefore, j.container.StartedAt.Add(j.policy.InitialDelay)} {
		if bound.After(j.next) {
			j.next = bound
		}
	}
}

func notRunning(reason string) string {
	if reason == "" {
		return messageNotRunning
	}
	return messageNotRunning + ": " + reason
}
