// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// RepeatFirst is the time after which the event of an error is repeated. It doubles with
	// each repetition up to RepeatMax.
	RepeatFirst = time.Hour

	// RepeatMax is the longest time between two events of an error.
	RepeatMax = 24 * time.Hour
)

// Announcer decides which errors get an event, and when. An error gets one event, which is
// repeated rarely while the error stays, because the API server deletes events after an
// hour. The probes of a pod whose rate is limited get one event together, because they share
// the cause. The zero value is not usable.
type Announcer struct {
	announced map[entryID]errorEvent
}

// errorEvent is the last event for an error of a probe.
type errorEvent struct {
	reason v1alpha1.ProbeErrorReason
	at     time.Time
	// repeat is the time until the next event.
	repeat time.Duration
}

// entryID identifies a probe in a report, which does not contain the container.
type entryID struct {
	podUID string
	// name is the wire form, marker#probe. It is empty for an error of the whole pod.
	name string
}

// errorID returns to what an error of a pod belongs: to the probe, or to the pod.
func errorID(podUID string, e v1alpha1.ContainerProbeError) entryID {
	if e.Reason == v1alpha1.ProbeRateLimited {
		return entryID{podUID: podUID}
	}
	return entryID{podUID: podUID, name: e.Name}
}

// NewAnnouncer returns an announcer that starts with a record at now. The errors in it got
// their event before.
func NewAnnouncer(now time.Time, record Record) *Announcer {
	a := &Announcer{announced: map[entryID]errorEvent{}}
	for uid, pod := range record.pods {
		for _, e := range pod.report.Errors {
			a.announced[errorID(uid, e)] = errorEvent{reason: e.Reason, at: now, repeat: RepeatFirst}
		}
	}
	return a
}

// Due returns the events that are due at now for the errors that have been reported, in the
// order of the plan, and when the next event is due if the errors stay. The time is zero if
// there are no errors.
func (a *Announcer) Due(now time.Time, plan Plan, record Record) (events []Event, next time.Time) {
	planned, stays := map[entryID]bool{}, map[entryID]bool{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		planned[entryID{podUID: pod.UID}] = true
		for j := range pod.Probes {
			name := pod.Probes[j].Name
			planned[entryID{podUID: pod.UID, name: name}] = true
			entry := record.pod(pod.UID).error(name)
			if entry.Reason == "" {
				continue
			}
			id := errorID(pod.UID, entry)
			stays[id] = true
			if a.announce(now, id, entry.Reason) {
				events = append(events, Event{Pod: pod, Probe: &pod.Probes[j], Error: true, Message: entry.Message})
			}
			if due := a.announced[id].at.Add(a.announced[id].repeat); next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	for id, last := range a.announced {
		if !planned[id] || !stays[id] && now.Sub(last.at) >= last.repeat {
			delete(a.announced, id)
		}
	}
	return events, next
}

// announce reports whether an error gets an event at now. An error that comes and goes gets
// as few events as one that stays.
func (a *Announcer) announce(now time.Time, id entryID, reason v1alpha1.ProbeErrorReason) bool {
	last, known := a.announced[id]
	due := last.at.Add(last.repeat)
	switch {
	case !known:
		a.announced[id] = errorEvent{reason: reason, at: now, repeat: RepeatFirst}
	case !now.Before(due), last.reason != reason && now.Sub(last.at) >= ErrorTextInterval:
		a.announced[id] = errorEvent{reason: reason, at: now, repeat: min(2*last.repeat, RepeatMax)}
	default:
		return false
	}
	return true
}

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
