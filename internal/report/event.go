// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// eventTextBytes is the longest message of an event.
const eventTextBytes = 1024

// Reason returns the event's reason, one word for programs.
func (e Event) Reason() string {
	if e.State == v1alpha1.ProbeSucceeded {
		return v1alpha1.EventReasonProbeSucceeded
	}
	return v1alpha1.EventReasonProbeFailed
}

// Text returns the event's message: the probe's name, and what it said where it said
// something. It has at most 1024 bytes.
func (e Event) Text() string {
	text := e.Probe.Name
	if e.Message != "" {
		text += ": " + e.Message
	}
	if len(text) > eventTextBytes {
		text = strings.ToValidUTF8(text[:eventTextBytes], "")
	}
	return text
}
