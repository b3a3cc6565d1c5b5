// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minGrace is the least time between SIGTERM and SIGKILL, whatever the grace period.
const minGrace = 2 * time.Second

// stage is how far the stopping of a container has come; empty where it is not stopped.
type stage string

const (
	// stageHook runs the preStop hook.
	stageHook stage = "hook"
	// stageTurn waits for the containers that are stopped before it.
	stageTurn stage = "turn"
	// stageTerm has been sent SIGTERM, stageKill SIGKILL.
	stageTerm stage = "term"
	stageKill stage = "kill"
)

// stop is how a container is being stopped.
type stop struct {
	stage stage
	// probe is whether a failed probe is why.
	probe bool
	// message is the event's; empty has the usual one.
	message string
	// grace is how long all of it may take, and until when that is.
	grace time.Duration
	until time.Time
	// inTurn is whether sidecars wait for the containers that use them.
	inTurn bool
	// hookDone is whether the preStop hook has ended.
	hookDone bool
	// deadline is when the stage is over though nothing happens; zero while it has none.
	deadline time.Time
}

// Stop stops the pod, as deleting it does in a cluster.
func (p *Pod) Stop(now time.Time) []Action {
	if p.stopped {
		return nil
	}
	p.stopped = true
	return p.stopAll(now)
}

// stopAll stops every container that runs and is not being stopped.
func (p *Pod) stopAll(now time.Time) []Action {
	var actions []Action
	for _, c := range p.containers {
		c.RestartAt, c.Delay = time.Time{}, 0
		// One whose start is under way is stopped when it has begun.
		if c.Phase == Running || c.Phase == Starting && c.ID != "" {
			actions = append(actions, p.stopOne(now, c, stop{grace: p.grace(), inTurn: true})...)
		}
	}
	return actions
}

// ProbeFailed takes in that the liveness or the startup probe of a container has failed
// for good: the container is killed. probe is "liveness" or "startup".
func (p *Pod) ProbeFailed(now time.Time, name, id, probe string, own *corev1.Probe) []Action {
	c := p.Container(name)
	if c == nil || c.ID != id || c.Phase != Running || p.stopped {
		return nil
	}
	grace := p.grace()
	if own != nil && own.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*own.TerminationGracePeriodSeconds) * time.Second
	}
	kind, restarted := "Container", ", will be restarted"
	switch {
	case c.Init:
		kind, restarted = "Init container", ""
	case policyOf(p.pod, c) == corev1.RestartPolicyNever:
		restarted = ""
	}
	message := fmt.Sprintf("%s %s failed %s probe%s", kind, name, probe, restarted)
	return p.stopOne(now, c, stop{grace: grace, probe: true, message: message})
}

// StartupSucceeded takes in that the startup probe of a container has succeeded.
func (p *Pod) StartupSucceeded(now time.Time, name, id string) []Action {
	c := p.Container(name)
	if c == nil || c.ID != id || c.Phase != Running || c.Startup {
		return nil
	}
	c.Startup, c.Ready = true, c.Spec.ReadinessProbe == nil
	return p.Advance(now)
}

// ReadinessChanged takes in what the readiness probe of a container says.
func (p *Pod) ReadinessChanged(name, id string, ready bool) {
	if c := p.Container(name); c != nil && c.ID == id && c.Active() {
		c.Ready = ready && c.Startup
	}
}

// grace returns the pod's grace period.
func (p *Pod) grace() time.Duration {
	if seconds := p.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return minGrace
}

// stopOne begins to stop a container.
func (p *Pod) stopOne(now time.Time, c *Container, how stop) []Action {
	how.until = now.Add(how.grace)
	c.Phase, c.stop = Stopping, how
	message := how.message
	if message == "" {
		message = "Stopping container " + c.Spec.Name
	}
	actions := []Action{c.tell(false, ReasonKilling, "%s", message)}
	c.stop.stage = stageHook
	if hook := c.Spec.Lifecycle; hook != nil && runs(hook.PreStop) && how.grace > 0 {
		c.stop.deadline = c.stop.until
		return append(actions, Action{
			Verb: RunHook, Container: c.Spec.Name, ID: c.ID, Hook: hook.PreStop, Timeout: how.grace,
		})
	}
	c.stop.hookDone = true
	return append(actions, p.stopFurther(now, c)...)
}

// stopFurther takes the container through the stages that are over.
func (p *Pod) stopFurther(now time.Time, c *Container) []Action {
	s := &c.stop
	over := !s.deadline.IsZero() && !now.Before(s.deadline)
	if s.stage == stageHook && (s.hookDone || over) {
		s.stage, s.deadline = stageTurn, s.until
		over = !now.Before(s.until)
	}
	if s.stage == stageTurn && (over || !s.inTurn || p.isTurn(c)) {
		s.stage, s.deadline = stageTerm, now.Add(max(s.until.Sub(now), minGrace))
		return []Action{c.act(Terminate)}
	}
	if s.stage == stageTerm && over {
		s.stage, s.deadline = stageKill, time.Time{}
		return []Action{c.act(Kill)}
	}
	return nil
}

// isTurn is whether the containers that end before this one have: sidecars end after all
// others, and in the reverse of their order.
func (p *Pod) isTurn(c *Container) bool {
	if !c.Sidecar {
		return true
	}
	for i := len(p.containers) - 1; i >= 0; i-- {
		other := p.containers[i]
		if other == c {
			return true
		}
		if other.Active() && (!other.Init || other.Sidecar) {
			return false
		}
	}
	return true
}
