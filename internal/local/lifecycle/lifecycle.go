// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides what the containers of one pod go through, as the kubelet
// does: the order of init containers and sidecars, hooks, restarts and their delay, and how
// a container is stopped. It owns no clock and starts nothing: each method takes the time
// and what has happened, and returns what is to be done.
//
// Its invariants:
//
//   - an init container runs only when all before it have succeeded, or have started where
//     they are sidecars, and the pod's containers run only when all have;
//   - what has been told to start is told to stop before it starts again;
//   - a container that is being stopped is killed at the latest when its grace is over;
//   - once the pod is stopped, nothing starts.
package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local/backoff"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Phase is where a container stands.
type Phase string

// The phases of a container.
const (
	// Waiting has never been started.
	Waiting Phase = "Waiting"
	// Starting runs, while its postStart hook has not ended. The rest of the pod takes it
	// for not running yet.
	Starting Phase = "Starting"
	// Running runs.
	Running Phase = "Running"
	// Stopping runs and is being stopped.
	Stopping Phase = "Stopping"
	// Exited has ended; RestartAt says whether it starts again.
	Exited Phase = "Exited"
)

// Exit is how a start of a container ended.
type Exit struct {
	// ID is the start that ended.
	ID string
	// Code is the exit code, Signal the signal that ended it or 0.
	Code, Signal int32
	// StartedAt and FinishedAt are its times.
	StartedAt, FinishedAt time.Time
	// Reason is Completed, Error or StartError, and Message says more where there is more
	// to say.
	Reason, Message string
}

// Container is one container of the pod.
type Container struct {
	// Spec is the container in the pod's spec.
	Spec *corev1.Container
	// Init is whether it is an init container, Sidecar whether a restartable one.
	Init, Sidecar bool

	// Phase is where it stands.
	Phase Phase
	// ID names its newest start; empty before the first.
	ID string
	// StartedAt is when that was.
	StartedAt time.Time
	// Starts counts its starts.
	Starts int
	// Startup is whether its startup probe has succeeded, or it has none, since it runs.
	Startup bool
	// Ready is whether its readiness probe has succeeded, or it has none, since it runs.
	Ready bool
	// Exit is how the newest start ended, Last how the one before did; nil where there is
	// none.
	Exit, Last *Exit
	// RestartAt is when it starts again after Exit. Zero where it does not.
	RestartAt time.Time
	// Delay is the crash-loop delay that RestartAt has waited for; zero where there was none.
	Delay time.Duration

	entry backoff.Entry
	stop  stop
}

// Active is whether a process runs.
func (c *Container) Active() bool {
	return c.Phase == Starting || c.Phase == Running || c.Phase == Stopping
}

// Restarts counts its starts after the first.
func (c *Container) Restarts() int32 { return int32(max(c.Starts-1, 0)) }

// Probed is whether the kubelet's liveness and readiness probes are run, and startup
// whether its startup probe is instead. Of a container that is being stopped, only
// readiness goes on.
func (c *Container) Probed() (startup, liveness, readiness bool) {
	switch c.Phase {
	case Running:
		return !c.Startup, c.Startup, c.Startup
	case Stopping:
		return false, false, c.Startup
	}
	return false, false, false
}

// Pod is the machine of one pod. It is not safe for concurrent use.
type Pod struct {
	pod    *corev1.Pod
	policy backoff.Policy

	// containers are the init containers in order, then the others.
	containers []*Container
	inits      int
	// reached is how many of the init containers are done with or have started for good.
	reached int
	// stopped is whether the pod has been told to stop, ended whether its containers have
	// ended for good, so that its sidecars are not needed.
	stopped, ended bool
}

// New returns the machine of a pod of which nothing runs.
func New(pod *corev1.Pod, policy backoff.Policy) *Pod {
	p := &Pod{pod: pod, policy: policy, inits: len(pod.Spec.InitContainers)}
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		p.containers = append(p.containers, &Container{Spec: spec, Phase: Waiting, Init: true, Sidecar: plan.Restartable(spec)})
	}
	for i := range pod.Spec.Containers {
		p.containers = append(p.containers, &Container{Spec: &pod.Spec.Containers[i], Phase: Waiting})
	}
	return p
}

// Containers returns the containers, init containers first, each in the order of the spec.
// They are the machine's own: only read them.
func (p *Pod) Containers() []*Container { return p.containers }

// Container returns a container by its name, or nil.
func (p *Pod) Container(name string) *Container {
	for _, c := range p.containers {
		if c.Spec.Name == name {
			return c
		}
	}
	return nil
}

// Initialized is whether all init containers have done their part.
func (p *Pod) Initialized() bool { return p.reached == p.inits }

// Stopped is whether the pod has been told to stop.
func (p *Pod) Stopped() bool { return p.stopped }

// Done is whether nothing of the pod runs or will run again.
func (p *Pod) Done() bool {
	for _, c := range p.containers {
		if c.Active() {
			return false
		}
	}
	return p.stopped || p.ended
}

// Ended is whether the pod's containers have ended for good, by themselves.
func (p *Pod) Ended() bool { return p.ended }

// Due returns when Advance is to be called next though nothing happens; false where never.
func (p *Pod) Due() (time.Time, bool) {
	var due time.Time
	for _, c := range p.containers {
		at := c.stop.deadline
		if c.Phase == Exited {
			at = c.RestartAt
		}
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due, !due.IsZero()
}
