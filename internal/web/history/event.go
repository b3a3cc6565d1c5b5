// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history reconstructs what the probes of pods did from what the API server still has:
// the current states with the time of their last transition, and the events of the agents. Events
// are kept for an hour by default, equal ones are combined, and those of a probe that changes too
// often are dropped. What is not known is shown as unknown and never guessed.
//
// The package is pure.
package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// combinedPrefix begins the message of an event that stands for events with different messages.
const combinedPrefix = "(combined from similar events): "

// Event is an event of a probe: one change of its state or one error, or several equal ones.
type Event struct {
	// Probe is the probe of the pod.
	Probe Probe
	// State is the state that the probe changed to. It is empty for an error.
	State v1alpha1.ProbeState
	// Message is the message of the probe.
	Message string
	// Count is how often the change occurred, at least 1. First and Last are the times of the first
	// and the last occurrence. Those of the others are not known.
	Count       int32
	First, Last time.Time
}

// Probe identifies a probe of a pod.
type Probe struct {
	// UID is the UID of the pod.
	UID types.UID
	// ID identifies the probe in the namespace of the pod.
	ID identity.ID
}

// ProbeOf returns the probe of a row.
func ProbeOf(row *probestatus.Row) Probe {
	return Probe{UID: row.UID, ID: identity.ID{Marker: row.Marker, Probe: row.Probe}}
}

// ParseEvent returns the event of a probe. It returns false for an event of another kind.
func ParseEvent(e *corev1.Event) (Event, bool) {
	parsed := Event{Count: max(e.Count, 1), First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time}
	switch e.Reason {
	case v1alpha1.EventReasonProbeSucceeded:
		parsed.State = v1alpha1.ProbeSucceeded
	case v1alpha1.EventReasonProbeFailed:
		parsed.State = v1alpha1.ProbeFailed
	case v1alpha1.EventReasonProbeError:
	default:
		return Event{}, false
	}
	name, message, _ := strings.Cut(strings.TrimPrefix(e.Message, combinedPrefix), ": ")
	id, err := identity.Parse(name)
	if err != nil || e.InvolvedObject.Kind != "Pod" || parsed.Last.IsZero() {
		return Event{}, false
	}
	if parsed.First.IsZero() || parsed.First.After(parsed.Last) {
		parsed.First = parsed.Last
	}
	parsed.Probe, parsed.Message = Probe{UID: e.InvolvedObject.UID, ID: id}, message
	return parsed, true
}

// ParseEvents returns the events of probes among the events, ordered by the first occurrence.
func ParseEvents(events []corev1.Event) []Event {
	var parsed []Event
	for i := range events {
		if e, ok := ParseEvent(&events[i]); ok {
			parsed = append(parsed, e)
		}
	}
	slices.SortStableFunc(parsed, func(a, b Event) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last), strings.Compare(string(a.State), string(b.State)))
	})
	return parsed
}

// within returns the estimated number of occurrences since the time: all of them if the first one is
// not earlier, otherwise their share of the time between the first and the last one.
func (e Event) within(since time.Time) float64 {
	switch {
	case e.Last.Before(since):
		return 0
	case !e.First.Before(since):
		return float64(e.Count)
	}
	span := e.Last.Sub(e.First)
	// The last one is in the window; the others are spread evenly.
	return 1 + float64(e.Count-1)*float64(e.Last.Sub(since))/float64(span)
}
