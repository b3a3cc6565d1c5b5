// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minGrace is the minimum time between SIGTERM and SIGKILL, whatever the grace period is.
const minGrace = 2 * time.Second

// stage is the stage of a container's termination. It is empty if the container is not
// being stopped.
type stage string

const (
	// stageHook runs the preStop hook.
	stageHook stage = "hook"
	// stageWait waits for the containers that stop before this one.
	stageWait stage = "wait"
	// stageTerm has sent SIGTERM, stageKill SIGKILL.
	stageTerm stage = "term"
	stageKill stage = "kill"
)

// stop is the termination of a container.
type stop struct {
	stage stage
	// probe reports whether a failed probe is the cause.
	probe bool
	// message is the message of the event. If it is empty, the usual one is used.
	message string
	// grace is the grace period, and until is when it ends.
	grace time.Duration
	until time.Time
	// ordered reports whether sidecars wait for the containers that use them.
	ordered bool
	// hookDone reports whether the preStop hook has ended.
	hookDone bool
	// deadline is when the stage ends even if no event occurs. It is zero if the stage has
	// no limit.
	deadline time.Time
}

// Stop stops the pod, as its deletion does in a cluster.
func (p *PodMachine) Stop(now time.Time) []Action {
	if p.stopped {
		return nil
	}
	p.stopped = true
	return p.stopAll(now)
}

// stopAll stops every container that runs and is not being stopped.
func (p *PodMachine) stopAll(now time.Time) []Action {
	var actions []Action
	for _, c := range p.containers {
		c.RestartAt, c.Delay = time.Time{}, 0
		// A container without an ID is stopped when its start is reported.
		if c.Phase == Running || c.Phase == Starting && c.ID != "" {
			actions = append(actions, p.stopOne(now, c, stop{grace: p.grace(), ordered: true})...)
		}
	}
	return actions
}

// ProbeFailed handles a liveness or startup probe that has reached its failure threshold:
// the container is killed. The probe is "liveness" or "startup".
func (p *PodMachine) ProbeFailed(now time.Time, name, id, probe string, own *corev1.Probe) []Action {
	c := p.runningContainer(name, id)
	if c == nil || p.stopped {
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

// StartupSucceeded handles the success of a container's startup probe.
func (p *PodMachine) StartupSucceeded(now time.Time, name, id string) []Action {
	c := p.runningContainer(name, id)
	if c == nil || c.Startup {
		return nil
	}
	c.Startup, c.Ready = true, c.Spec.ReadinessProbe == nil
	return p.Advance(now)
}

// runningContainer returns the container if the run with the ID is in phase Running, or
// nil.
func (p *PodMachine) runningContainer(name, id string) *ContainerMachine {
	if c := p.Container(name); c != nil && c.ID == id && c.Phase == Running {
		return c
	}
	return nil
}

// ReadinessChanged handles a transition of a container's readiness probe.
func (p *PodMachine) ReadinessChanged(name, id string, ready bool) {
	if c := p.Container(name); c != nil && c.ID == id && c.Active() {
		c.Ready = ready && c.Startup
	}
}

// grace returns the pod's grace period.
func (p *PodMachine) grace() time.Duration {
	if seconds := p.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return minGrace
}

func (p *PodMachine) stopOne(now time.Time, c *ContainerMachine, how stop) []Action {
	how.until = now.Add(how.grace)
	c.Phase, c.stop = Stopping, how
	message := how.message
	if message == "" {
		message = "Stopping container " + c.Spec.Name
	}
	actions := []Action{c.event(false, ReasonKilling, "%s", message)}
	c.stop.stage = stageHook
	if hook := c.Spec.Lifecycle; hook != nil && supported(hook.PreStop) && how.grace > 0 {
		c.stop.deadline = c.stop.until
		return append(actions, Action{
			Verb: RunHook, Container: c.Spec.Name, ID: c.ID, Hook: hook.PreStop, Timeout: how.grace,
		})
	}
	c.stop.hookDone = true
	return append(actions, p.advanceStop(now, c)...)
}

// advanceStop moves a container that is being stopped to the next stage if the current one
// is over.
func (p *PodMachine) advanceStop(now time.Time, c *ContainerMachine) []Action {
	s := &c.stop
	over := !s.deadline.IsZero() && !now.Before(s.deadline)
	if s.stage == stageHook && (s.hookDone || over) {
		s.stage, s.deadline = stageWait, s.until
		over = !now.Before(s.until)
	}
	if s.stage == stageWait && (over || !s.ordered || p.mayStop(c)) {
		s.stage, s.deadline = stageTerm, now.Add(max(s.until.Sub(now), minGrace))
		return []Action{c.action(Terminate)}
	}
	if s.stage == stageTerm && over {
		s.stage, s.deadline = stageKill, time.Time{}
		return []Action{c.action(Kill)}
	}
	return nil
}

// mayStop reports whether the containers that stop before this one have: sidecars stop
// after all app containers, in the reverse of their order.
func (p *PodMachine) mayStop(c *ContainerMachine) bool {
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
