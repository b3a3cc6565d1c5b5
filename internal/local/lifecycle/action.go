// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

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

// String returns the action in one line.
func (a Action) String() string {
	switch a.Verb {
	case RunHook:
		return fmt.Sprintf("%s %s %s", a.Verb, a.Container, a.Timeout)
	case Record:
		return fmt.Sprintf("%s %s: %s", a.Reason, a.Container, a.Message)
	}
	return fmt.Sprintf("%s %s", a.Verb, a.Container)
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
