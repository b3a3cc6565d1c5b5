// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
// hour. The zero value is not usable.
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
	// name is the wire form, marker#probe.
	name string
}

// NewAnnouncer returns an announcer that starts with a ledger at now. The errors in it got
// their event before.
func NewAnnouncer(now time.Time, ledger Ledger) *Announcer {
	a := &Announcer{announced: map[entryID]errorEvent{}}
	for uid, pod := range ledger.pods {
		for _, e := range pod.report.Errors {
			a.announced[entryID{podUID: uid, name: e.Name}] = errorEvent{reason: e.Reason, at: now, repeat: RepeatFirst}
		}
	}
	return a
}

// Due returns the events that are due at now for the errors that have been reported, in the
// order of the plan, and when the next event is due if the errors stay. The time is zero if
// there are no errors.
func (a *Announcer) Due(now time.Time, plan Plan, ledger Ledger) (events []Event, next time.Time) {
	planned := map[entryID]bool{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			id := entryID{podUID: pod.UID, name: pod.Probes[j].Name}
			planned[id] = true
			entry := ledger.pods[pod.UID].error(id.name)
			if entry.Reason == "" {
				continue
			}
			if a.announce(now, id, entry.Reason) {
				events = append(events, Event{Pod: pod, Probe: &pod.Probes[j], Error: true, Message: entry.Message})
			}
			if due := a.announced[id].at.Add(a.announced[id].repeat); next.IsZero() || due.Before(next) {
				next = due
			}
		}
	}
	for id, last := range a.announced {
		stays := ledger.pods[id.podUID].error(id.name).Reason != ""
		if !planned[id] || !stays && now.Sub(last.at) >= last.repeat {
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
