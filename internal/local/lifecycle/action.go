// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Verb says what an action does.
type Verb string

// The verbs of actions.
const (
	// Start starts the container; Begun or NotBegun tells what came of it.
	Start Verb = "Start"
	// RunHook runs a hook in the container; HookEnded tells what came of it.
	RunHook Verb = "RunHook"
	// Terminate sends the container's processes SIGTERM.
	Terminate Verb = "Terminate"
	// Kill sends them SIGKILL. ContainerEnded tells when they have ended.
	Kill Verb = "Kill"
	// Tell writes an event.
	Tell Verb = "Tell"
)

// Action is one thing to do.
type Action struct {
	// Verb says what.
	Verb Verb
	// Container is the container's name, and ID the start of it that is meant; empty for
	// Start.
	Container, ID string
	// Hook is what RunHook runs, for at most Timeout; zero means without bound.
	Hook    *corev1.LifecycleHandler
	Timeout time.Duration
	// Warning, Reason and Message are those of an event.
	Warning         bool
	Reason, Message string
}

// String returns the action in one line, for people and tests.
func (a Action) String() string {
	switch a.Verb {
	case RunHook:
		return fmt.Sprintf("%s %s %s", a.Verb, a.Container, a.Timeout)
	case Tell:
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

func (c *Container) tell(warning bool, reason, format string, args ...any) Action {
	return Action{
		Verb: Tell, Container: c.Spec.Name, ID: c.ID,
		Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

func (c *Container) act(verb Verb) Action {
	return Action{Verb: verb, Container: c.Spec.Name, ID: c.ID}
}
