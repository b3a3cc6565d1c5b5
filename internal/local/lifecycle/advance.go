// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Advance does what is due at now: it starts what may start and goes on with what is being
// stopped. Call it to begin, after what has happened, and when Due has come.
func (p *Pod) Advance(now time.Time) []Action {
	var actions []Action
	if !p.stopped && !p.ended {
		actions = p.start(now)
	}
	for _, c := range p.containers {
		if c.Phase == Stopping {
			actions = append(actions, p.stopFurther(now, c)...)
		}
	}
	return actions
}

// start starts what may start.
func (p *Pod) start(now time.Time) []Action {
	var actions []Action
	for i, c := range p.containers[:p.inits] {
		if i < p.reached && !c.Sidecar {
			continue
		}
		actions = append(actions, c.startIfDue(now)...)
		if i < p.reached {
			continue
		}
		if c.Phase == Exited && !c.Sidecar && c.Exit.Code != 0 && c.RestartAt.IsZero() {
			return append(actions, p.end(now)...)
		}
		if !c.done() {
			return actions
		}
		p.reached++
	}
	over := true
	for _, c := range p.containers[p.inits:] {
		actions = append(actions, c.startIfDue(now)...)
		over = over && c.Phase == Exited && c.RestartAt.IsZero()
	}
	if over {
		actions = append(actions, p.end(now)...)
	}
	return actions
}

// done is whether the init container lets the next one run.
func (c *Container) done() bool {
	if c.Sidecar {
		return c.Phase == Running && c.Startup
	}
	return c.Phase == Exited && c.Exit.Code == 0
}

// startIfDue starts a container that has not been started, or whose restart is due.
func (c *Container) startIfDue(now time.Time) []Action {
	again := c.Phase == Exited && !c.RestartAt.IsZero() && !c.RestartAt.After(now)
	if c.Phase != Waiting && !again {
		return nil
	}
	// Until the caller has done it, the container counts as starting.
	c.Phase, c.ID = Starting, ""
	c.RestartAt, c.Delay = time.Time{}, 0
	return []Action{c.act(Start)}
}

// end stops what is left of a pod whose containers have ended for good.
func (p *Pod) end(now time.Time) []Action {
	p.ended = true
	return p.stopAll(now)
}

// Begun takes in that a container has been started under an ID.
func (p *Pod) Begun(now time.Time, name, id string) []Action {
	c := p.Container(name)
	if c == nil || c.Phase != Starting {
		return nil
	}
	c.ID, c.StartedAt, c.stop = id, now, stop{}
	c.Starts++
	if c.Exit != nil {
		c.Last, c.Exit = c.Exit, nil
	}
	c.Startup, c.Ready = false, false
	actions := []Action{c.tell(false, ReasonStarted, "Container started")}
	if hook := c.Spec.Lifecycle; hook != nil && runs(hook.PostStart) {
		return append(actions, Action{Verb: RunHook, Container: name, ID: id, Hook: hook.PostStart})
	}
	return append(actions, p.running(now, c)...)
}

// runs is whether the hook is one that a local run runs.
func runs(hook *corev1.LifecycleHandler) bool {
	return hook != nil && (hook.Exec != nil || hook.Sleep != nil)
}

// running takes the container for running.
func (p *Pod) running(now time.Time, c *Container) []Action {
	c.Phase = Running
	c.Startup = c.Spec.StartupProbe == nil
	c.Ready = c.Startup && c.Spec.ReadinessProbe == nil
	if p.stopped {
		return p.stopOne(now, c, stop{grace: p.grace(), inTurn: true})
	}
	return p.Advance(now)
}

// NotBegun takes in that a container could not be started, and why. It counts as a start
// that ended at once, as it does for a container runtime.
func (p *Pod) NotBegun(now time.Time, name, id string, err error) []Action {
	c := p.Container(name)
	if c == nil || c.Phase != Starting {
		return nil
	}
	const startError = 128
	c.ID, c.StartedAt, c.stop = id, now, stop{}
	c.Starts++
	if c.Exit != nil {
		c.Last = c.Exit
	}
	actions := []Action{c.tell(true, ReasonFailed, "Error: %v", err)}
	return append(actions, p.exited(now, c, Exit{
		ID: id, Code: startError, StartedAt: now, FinishedAt: now, Reason: "StartError", Message: err.Error(),
	})...)
}

// HookEnded takes in that a hook has ended, and with what.
func (p *Pod) HookEnded(now time.Time, name, id string, hook *corev1.LifecycleHandler, err error) []Action {
	c := p.Container(name)
	if c == nil || c.ID != id {
		return nil
	}
	switch {
	case c.Phase == Starting && err == nil:
		return p.running(now, c)
	case c.Phase == Starting:
		actions := []Action{c.tell(true, ReasonFailedPostStartHook, "PostStartHook failed")}
		return append(actions, p.stopOne(now, c, stop{grace: p.grace(), message: "FailedPostStartHook"})...)
	case c.Phase == Stopping && c.stop.stage == stageHook && hook == c.Spec.Lifecycle.PreStop:
		var actions []Action
		if err != nil {
			actions = append(actions, c.tell(true, ReasonFailedPreStopHook, "PreStopHook failed"))
		}
		c.stop.hookDone = true
		return append(actions, p.stopFurther(now, c)...)
	}
	return nil
}

// ContainerEnded takes in that the processes of a container have ended. What follows from
// it for the pod, Advance does: a status between the two shows the container as ended, as
// the kubelet's does.
func (p *Pod) ContainerEnded(now time.Time, name string, exit Exit) []Action {
	c := p.Container(name)
	if c == nil || c.ID != exit.ID || !c.Active() {
		return nil
	}
	exit.StartedAt = c.StartedAt
	if exit.Reason == "" {
		exit.Reason = "Completed"
		if exit.Code != 0 {
			exit.Reason = "Error"
		}
	}
	return p.exited(now, c, exit)
}

// exited decides what follows the end of a container.
func (p *Pod) exited(now time.Time, c *Container, exit Exit) []Action {
	probe := c.stop.probe
	c.Phase, c.Startup, c.Ready, c.stop = Exited, false, false, stop{}
	c.Exit, c.RestartAt, c.Delay = &exit, time.Time{}, 0
	if p.stopped || p.ended {
		return nil
	}
	if at, delay := p.restart(now, c, probe); !at.IsZero() {
		c.RestartAt, c.Delay = at, delay
		if at.After(now) {
			return []Action{c.tell(true, ReasonBackOff, "Back-off restarting failed container %s in pod %s_%s(%s)",
				c.Spec.Name, p.pod.Name, p.pod.Namespace, p.pod.UID)}
		}
	}
	return nil
}

// restart returns when the container starts again after Exit, and the delay in that. Zero
// means never.
//
// The kubelet starts a container that it killed for its probe in the same breath, while
// the newest end that it knows of is still the one before: so that is what the delay is
// counted from, where there is one, and there is none where there is none. Only a delay
// that is not over then is counted from this end, by the rules for any end.
func (p *Pod) restart(now time.Time, c *Container, probe bool) (time.Time, time.Duration) {
	finished := c.Exit.FinishedAt
	if probe && (c.Sidecar || policyOf(p.pod, c) != corev1.RestartPolicyNever) {
		if c.Last == nil {
			return now, 0
		}
		if before := c.Last.FinishedAt; !c.entry.Until(before).After(now) {
			c.entry = p.policy.Restarted(c.entry, before, now)
			return now, 0
		}
	}
	switch policyOf(p.pod, c) {
	case corev1.RestartPolicyNever:
		return time.Time{}, 0
	case corev1.RestartPolicyOnFailure:
		if c.Exit.Code == 0 {
			return time.Time{}, 0
		}
	}
	if c.Init && !c.Sidecar && c.Exit.Code == 0 {
		return time.Time{}, 0
	}
	at := c.entry.Until(finished)
	delay := at.Sub(finished)
	c.entry = p.policy.Restarted(c.entry, finished, later(at, now))
	return later(at, now), delay
}

// policyOf returns the policy that the container is restarted by: its own, or its pod's.
func policyOf(pod *corev1.Pod, c *Container) corev1.RestartPolicy {
	if own := c.Spec.RestartPolicy; own != nil {
		return corev1.RestartPolicy(*own)
	}
	return pod.Spec.RestartPolicy
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
