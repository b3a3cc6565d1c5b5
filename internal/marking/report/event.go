// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// eventTextBytes is the maximum length of an event's message.
const eventTextBytes = 1024

// Reason returns the event's reason.
func (e Event) Reason() string {
	if e.Error {
		return v1alpha1.EventReasonProbeError
	}
	if e.State == v1alpha1.ProbeSucceeded {
		return v1alpha1.EventReasonProbeSucceeded
	}
	return v1alpha1.EventReasonProbeFailed
}

// Type returns the event's type: Warning for an error, Normal for a change of the state.
func (e Event) Type() string {
	if e.Error {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Text returns the event's message: the probe's name and its message, if any. It has at
// most 1024 bytes.
func (e Event) Text() string {
	message := e.Probe.Name
	if e.Message != "" {
		message += ": " + e.Message
	}
	return text.Truncate(message, eventTextBytes)
}

// Event is a change of a reported state, or an error, that causes an event for the pod.
type Event struct {
	// Pod is the planned pod.
	Pod *v1alpha1.PodProbe
	// Probe is the planned probe.
	Probe *v1alpha1.ContainerProbe
	// State is Succeeded or Failed. It is empty for an error.
	State v1alpha1.ProbeState
	// Error reports whether the event is for an error.
	Error bool
	// Message is the message that was reported with the state or the error.
	Message string
}
