// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle decides what happens to the containers of one pod, by the rules of the
// kubelet: the order of init containers and sidecars, hooks, restarts and their back-off,
// and termination, and the status of the pod. It has no clock and starts nothing: each method
// takes the current time and an event, and returns the actions to take.
//
// Its invariants:
//
//   - an init container starts only after all init containers before it have succeeded (or,
//     if they are sidecars, have started), and the app containers start only after all init
//     containers have;
//   - a container that was started is stopped before it starts again;
//   - a container that is being stopped is killed when its grace period is over;
//   - nothing starts after the pod was stopped.
package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

// Phase is the phase of a container.
type Phase string

// The phases of a container.
const (
	// Waiting means that the container was never started.
	Waiting Phase = "Waiting"
	// Starting means that the container runs and its postStart hook has not ended. The
	// rest of the pod does not treat it as running yet.
	Starting Phase = "Starting"
	// Running means that the container runs.
	Running Phase = "Running"
	// Stopping means that the container runs and is being stopped.
	Stopping Phase = "Stopping"
	// Exited means that the container exited. RestartAt says whether it starts again.
	Exited Phase = "Exited"
)

// ContainerExit describes how one run of a container ended.
type ContainerExit struct {
	// ID is the ID of the run.
	ID string
	// Code is the exit code. Signal is the signal that ended the container, or 0.
	Code, Signal int32
	// StartedAt and FinishedAt are the times of the run.
	StartedAt, FinishedAt time.Time
	// Reason is Completed, Error or StartError. Message has the details, if there are any.
	Reason, Message string
}

// ContainerMachine is the state machine of one container.
type ContainerMachine struct {
	// Spec is the container in the pod's spec.
	Spec *corev1.Container
	// Init reports whether it is an init container, Sidecar whether it is a restartable
	// one.
	Init, Sidecar bool

	// Phase is the current phase.
	Phase Phase
	// ID identifies the newest run. It is empty before the first.
	ID string
	// StartedAt is when the newest run started.
	StartedAt time.Time
	// Starts counts the runs.
	Starts int
	// Startup reports whether the startup probe of this run has succeeded. It is true for
	// a running container without a startup probe.
	Startup bool
	// Ready reports whether the readiness probe of this run has succeeded. It is true for
	// a started container without a readiness probe.
	Ready bool
	// Exit describes the end of the newest run, LastExit that of the run before. They are
	// nil if there is none.
	Exit, LastExit *ContainerExit
	// RestartAt is when the container restarts after Exit. It is zero if it does not.
	RestartAt time.Time
	// Delay is the back-off included in RestartAt. It is zero if there is none.
	Delay time.Duration

	stop stop
}

// Active reports whether a process of the container runs.
func (c *ContainerMachine) Active() bool {
	return c.Phase == Starting || c.Phase == Running || c.Phase == Stopping
}

// up reports whether the container's status is running.
func (c *ContainerMachine) up() bool { return c.Phase == Running || c.Phase == Stopping }

// initialized reports whether an init container allows the next one to start: it has
// succeeded, or it is a sidecar that has started.
func (c *ContainerMachine) initialized() bool {
	if c.Sidecar {
		return c.Phase == Running && c.Startup
	}
	return c.Phase == Exited && c.Exit.Code == 0
}

// PodMachine is the state machine of one pod. It is not safe for concurrent use.
type PodMachine struct {
	pod     *corev1.Pod
	backOff *backOff

	// containers are the init containers in order, then the app containers.
	containers []*ContainerMachine
	inits      int
	// reached counts the init containers that have succeeded, or started if they are
	// sidecars.
	reached int
	// stopped reports whether the pod was stopped. ended reports whether its containers
	// have ended for good, so that its sidecars are not needed.
	stopped, ended bool
}

// New returns the machine of a pod of which no container was started.
func New(pod *corev1.Pod, crashLoop CrashLoop) *PodMachine {
	p := &PodMachine{pod: pod, backOff: newBackOff(crashLoop), inits: len(pod.Spec.InitContainers)}
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		p.containers = append(p.containers, &ContainerMachine{Spec: spec, Phase: Waiting, Init: true, Sidecar: plan.Restartable(spec)})
	}
	for i := range pod.Spec.Containers {
		p.containers = append(p.containers, &ContainerMachine{Spec: &pod.Spec.Containers[i], Phase: Waiting})
	}
	return p
}

// Containers returns the init containers and then the app containers, in the order of the
// spec. The caller must not modify them.
func (p *PodMachine) Containers() []*ContainerMachine { return p.containers }

// Container returns a container by its name, or nil.
func (p *PodMachine) Container(name string) *ContainerMachine {
	for _, c := range p.containers {
		if c.Spec.Name == name {
			return c
		}
	}
	return nil
}

// initialized reports whether all init containers have succeeded, or started if they are
// sidecars.
func (p *PodMachine) initialized() bool { return p.reached == p.inits }

// ActiveProbes reports which of the kubelet's probes of a container run. The startup probe holds
// back the others. While the container or the pod is being stopped, only the readiness probe runs.
func (p *PodMachine) ActiveProbes(c *ContainerMachine) (startup, liveness, readiness bool) {
	running := c.Phase == Running && !p.stopped
	return running && !c.Startup, running && c.Startup, c.up() && c.Startup
}

// Done reports whether no container of the pod runs or will run again.
func (p *PodMachine) Done() bool {
	for _, c := range p.containers {
		if c.Active() {
			return false
		}
	}
	return p.stopped || p.ended
}

// Due returns when Advance must be called even if no event occurs. It returns false if
// that is never.
func (p *PodMachine) Due() (time.Time, bool) {
	var due time.Time
	for _, c := range p.containers {
		at := c.stop.deadline
		if c.Phase == Exited {
			at = c.RestartAt
		}
		due = earliest.Time(due, at)
	}
	return due, !due.IsZero()
}

// Verb is the type of an action.
type Verb string

// The verbs of actions.
const (
	// Start starts the container. The caller reports the result with ContainerStarted or
	// StartFailed.
	Start Verb = "Start"
	// RunHook runs a hook in the container. The caller reports its end with HookEnded.
	RunHook Verb = "RunHook"
	// Terminate sends SIGTERM to the container's processes.
	Terminate Verb = "Terminate"
	// Kill sends SIGKILL to the container's processes. The caller reports their end with
	// ContainerExited.
	Kill Verb = "Kill"
	// Record writes an event.
	Record Verb = "Record"
)

// Action is one action for the caller to take.
type Action struct {
	// Verb is the type of the action.
	Verb Verb
	// Container is the container's name. ID is the run that the action applies to; it is
	// empty for Start.
	Container, ID string
	// Hook is the hook to run, for at most Timeout. A zero Timeout means no limit.
	Hook    *corev1.LifecycleHandler
	Timeout time.Duration
	// Warning, Reason and Message describe the event to write.
	Warning         bool
	Reason, Message string
}

// The reasons of the kubelet's events on containers.
const (
	ReasonStarted             = "Started"
	ReasonFailed              = "Failed"
	ReasonKilling             = "Killing"
	ReasonBackOff             = "BackOff"
	ReasonFailedPostStartHook = "FailedPostStartHook"
	ReasonFailedPreStopHook   = "FailedPreStopHook"
	ReasonUnhealthy           = "Unhealthy"
)

func (c *ContainerMachine) event(warning bool, reason, format string, args ...any) Action {
	return Action{
		Verb: Record, Container: c.Spec.Name, ID: c.ID,
		Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func (c *ContainerMachine) action(verb Verb) Action {
	return Action{Verb: verb, Container: c.Spec.Name, ID: c.ID}
}
