// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// startError is the exit code of a container that could not be started, as container
// runtimes report it.
const startError = 128

// Advance starts the containers that may start and advances the termination of those that
// are being stopped. Call it at the beginning, after each event, and when Due is reached.
func (p *PodMachine) Advance(now time.Time) []Action {
	var actions []Action
	if !p.stopped && !p.ended {
		actions = p.start(now)
	}
	for _, c := range p.containers {
		if c.Phase == Stopping {
			actions = append(actions, p.advanceStop(now, c)...)
		}
	}
	return actions
}

// start starts the containers that may start.
func (p *PodMachine) start(now time.Time) []Action {
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
		if !c.initialized() {
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

// startIfDue starts a container that was never started, or whose restart is due.
func (c *ContainerMachine) startIfDue(now time.Time) []Action {
	restart := c.Phase == Exited && !c.RestartAt.IsZero() && !c.RestartAt.After(now)
	if c.Phase != Waiting && !restart {
		return nil
	}
	// The container is starting until the caller reports the result.
	c.Phase, c.ID = Starting, ""
	c.RestartAt, c.Delay = time.Time{}, 0
	return []Action{c.action(Start)}
}

// end stops the sidecars of a pod whose other containers have ended for good.
func (p *PodMachine) end(now time.Time) []Action {
	p.ended = true
	return p.stopAll(now)
}

// ContainerStarted handles the start of a container under an ID.
func (p *PodMachine) ContainerStarted(now time.Time, name, id string) []Action {
	c := p.Container(name)
	if c == nil || c.Phase != Starting {
		return nil
	}
	c.newRun(now, id)
	c.Exit = nil
	c.Startup, c.Ready = false, false
	actions := []Action{c.event(false, ReasonStarted, "Container started")}
	if hook := c.Spec.Lifecycle; hook != nil && supported(hook.PostStart) {
		return append(actions, Action{Verb: RunHook, Container: name, ID: id, Hook: hook.PostStart})
	}
	return append(actions, p.running(now, c)...)
}

// newRun counts a run that starts at now.
func (c *ContainerMachine) newRun(now time.Time, id string) {
	c.ID, c.StartedAt, c.stop = id, now, stop{}
	c.Starts++
	if c.Exit != nil {
		c.LastExit = c.Exit
	}
}

// supported reports whether a local run can run the hook.
func supported(hook *corev1.LifecycleHandler) bool {
	return hook != nil && (hook.Exec != nil || hook.Sleep != nil)
}

func (p *PodMachine) running(now time.Time, c *ContainerMachine) []Action {
	c.Phase = Running
	c.Startup = c.Spec.StartupProbe == nil
	c.Ready = c.Startup && c.Spec.ReadinessProbe == nil
	if p.stopped {
		return p.stopOne(now, c, stop{grace: p.grace(), ordered: true})
	}
	return p.Advance(now)
}

// StartFailed handles a container that could not be started. As in a container runtime, it
// counts as a run that exited immediately.
func (p *PodMachine) StartFailed(now time.Time, name, id string, err error) []Action {
	c := p.Container(name)
	if c == nil || c.Phase != Starting {
		return nil
	}
	c.newRun(now, id)
	actions := []Action{c.event(true, ReasonFailed, "Error: %v", err)}
	return append(actions, p.exited(now, c, ContainerExit{
		ID: id, Code: startError, StartedAt: now, FinishedAt: now, Reason: "StartError", Message: err.Error(),
	})...)
}

// HookEnded handles the end of a hook. A nil error means that the hook succeeded.
func (p *PodMachine) HookEnded(now time.Time, name, id string, hook *corev1.LifecycleHandler, err error) []Action {
	c := p.Container(name)
	if c == nil || c.ID != id {
		return nil
	}
	switch {
	case c.Phase == Starting && err == nil:
		return p.running(now, c)
	case c.Phase == Starting:
		actions := []Action{c.event(true, ReasonFailedPostStartHook, "PostStartHook failed")}
		return append(actions, p.stopOne(now, c, stop{grace: p.grace(), message: "FailedPostStartHook"})...)
	case c.Phase == Stopping && c.stop.stage == stageHook && hook == c.Spec.Lifecycle.PreStop:
		var actions []Action
		if err != nil {
			actions = append(actions, c.event(true, ReasonFailedPreStopHook, "PreStopHook failed"))
		}
		c.stop.hookDone = true
		return append(actions, p.advanceStop(now, c)...)
	}
	return nil
}

// ContainerExited handles the end of the processes of a container. Its consequences for
// the pod follow in Advance, so that a status in between shows the container as terminated,
// as the kubelet's status does.
func (p *PodMachine) ContainerExited(now time.Time, name string, exit ContainerExit) []Action {
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

// exited decides whether and when a container restarts after its exit.
func (p *PodMachine) exited(now time.Time, c *ContainerMachine, exit ContainerExit) []Action {
	probe := c.stop.probe
	c.Phase, c.Startup, c.Ready, c.stop = Exited, false, false, stop{}
	c.Exit, c.RestartAt, c.Delay = &exit, time.Time{}, 0
	if p.stopped || p.ended {
		return nil
	}
	if at, delay := p.restart(now, c, probe); !at.IsZero() {
		c.RestartAt, c.Delay = at, delay
		if at.After(now) {
			return []Action{c.event(true, ReasonBackOff, "Back-off restarting failed container %s in pod %s_%s(%s)",
				c.Spec.Name, p.pod.Name, p.pod.Namespace, p.pod.UID)}
		}
	}
	return nil
}

// restart returns when the container restarts after Exit, and the delay included in that.
// A zero time means never.
//
// If the kubelet kills a container because of its probe, it starts the container in the
// same sync, when the newest exit that it knows is the one of the run before. The delay is
// therefore counted from that exit, and there is no delay if there was no such run. Only if
// that delay is not over, it is counted from the current exit, as for any other exit.
func (p *PodMachine) restart(now time.Time, c *ContainerMachine, probe bool) (time.Time, time.Duration) {
	name, policy := c.Spec.Name, policyOf(p.pod, c)
	if probe && (c.Sidecar || policy != corev1.RestartPolicyNever) {
		if c.LastExit == nil {
			return now, 0
		}
		if before := c.LastExit.FinishedAt; !p.backOff.until(name, before).After(now) {
			p.backOff.restarted(name, before, now)
			return now, 0
		}
	}
	succeeded := c.Exit.Code == 0
	switch {
	case policy == corev1.RestartPolicyNever,
		policy == corev1.RestartPolicyOnFailure && succeeded,
		c.Init && !c.Sidecar && succeeded:
		return time.Time{}, 0
	}
	finished := c.Exit.FinishedAt
	at := p.backOff.until(name, finished)
	delay := at.Sub(finished)
	if at.Before(now) {
		at = now
	}
	p.backOff.restarted(name, finished, at)
	return at, delay
}

// policyOf returns the container's own restart policy, or the pod's if it has none.
func policyOf(pod *corev1.Pod, c *ContainerMachine) corev1.RestartPolicy {
	if own := c.Spec.RestartPolicy; own != nil {
		return corev1.RestartPolicy(*own)
	}
	return pod.Spec.RestartPolicy
}
