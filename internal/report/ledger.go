// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// entryID identifies a probe in a status, which does not contain the container.
type entryID struct {
	podUID types.UID
	// name is the wire form, marker#probe.
	name string
}

// entries are the reported states of a status.
type entries map[entryID]v1alpha1.ContainerProbeState

// of returns the reported state of a probe that is planned with the plan value.
func (e entries) of(id entryID, plan string) (v1alpha1.ContainerProbeState, bool) {
	entry, found := e[id]
	if !found || !probeid.SamePlan(entry.Plan, plan) {
		return v1alpha1.ContainerProbeState{}, false
	}
	return entry, true
}

func entryOfKey(key probeid.Key) entryID { return entryID{podUID: key.PodUID, name: key.String()} }

// Ledger records what has been reported. It is immutable: its methods return a new ledger.
type Ledger struct {
	status   v1alpha1.NodePodProbeStatus
	entries  entries
	messages map[entryID]messages
	// errors are the reported errors, and errorAt is when each was reported or cleared.
	errors  map[entryID]v1alpha1.ContainerProbeError
	errorAt map[entryID]time.Time
	// announced are the states that need no event: there was one, or they were reported
	// before the agent started.
	announced map[entryID]lastEvent
}

// lastEvent is what the newest event of a probe reported.
type lastEvent struct {
	plan  string
	state v1alpha1.ProbeState
}

// messages are the reports of one probe's messages.
type messages struct {
	// at is when a state or message was last reported.
	at time.Time
	// tokens limits reports of changed messages.
	tokens bucket
}

// Read returns the ledger of an agent that starts with a stored status. The states in the
// status need no event.
func Read(status v1alpha1.NodePodProbeStatus) Ledger {
	stored := index(status)
	return Ledger{status: status, entries: stored, errors: indexErrors(status), announced: statesOf(stored)}
}

// Adopt returns the ledger after another client has changed or removed the status. Decide
// compares with the new status, but it does not change which states need an event.
func (l Ledger) Adopt(status v1alpha1.NodePodProbeStatus) Ledger {
	l.status, l.entries, l.errors = status, index(status), indexErrors(status)
	return l
}

// Wrote returns the ledger after a write of the status.
func (l Ledger) Wrote(now time.Time, status v1alpha1.NodePodProbeStatus) Ledger {
	stored := index(status)
	written := make(map[entryID]messages, len(stored))
	for id, entry := range stored {
		before, reported := l.entries.of(id, entry.Plan)
		m := l.messages[id]
		switch {
		case reported && before.State == entry.State && before.Message == entry.Message:
		case reported && before.State == entry.State && before.LastTransitionTime.Equal(&entry.LastTransitionTime):
			m = messages{at: now, tokens: m.tokens.take(now)}
		default:
			m.at = now
		}
		written[id] = m
	}
	errs := indexErrors(status)
	return Ledger{
		status: status, entries: stored, messages: written, announced: statesOf(stored),
		errors: errs, errorAt: l.wroteErrors(now, errs),
	}
}

// Status returns the reported status.
func (l Ledger) Status() v1alpha1.NodePodProbeStatus { return l.status }

// MessageDue returns when a changed message of a probe may be reported while the state stays
// the same: when its bucket has a token. If the state has changed and changed back since the
// last report, at transition, the message is due immediately: within a second, reported times
// do not show the change. The reported transition is never newer than the report, although a
// wall clock that was set back before an agent restart makes it look so.
func (l Ledger) MessageDue(key probeid.Key, transition time.Time) time.Time {
	id := entryOfKey(key)
	m := l.messages[id]
	if transition.After(m.at) && !transition.Equal(l.entries[id].LastTransitionTime.Time) {
		return time.Time{}
	}
	return m.tokens.due()
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

// Events returns the events of a status that has been written, in the order of the plan.
// Unknown causes no event, and neither does a state that is reported again.
func (l Ledger) Events(plan Plan, status v1alpha1.NodePodProbeStatus) []Event {
	written := index(status)
	var events []Event
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			id := entryID{podUID: types.UID(pod.UID), name: pod.Probes[j].Name}
			entry, found := written[id]
			known := l.announced[id]
			again := entry.State == known.state && probeid.SamePlan(entry.Plan, known.plan)
			if !found || again || entry.State == v1alpha1.ProbeUnknown {
				continue
			}
			events = append(events, Event{Pod: pod, Probe: &pod.Probes[j], State: entry.State, Message: entry.Message})
		}
	}
	return events
}

// SameStates reports whether two statuses have equal states of the same probes. It ignores
// the fields that Seamark adds, because an API server with the CRDs of OpenKruise drops them.
func SameStates(a, b v1alpha1.NodePodProbeStatus) bool {
	return maps.EqualFunc(index(a), index(b), func(x, y v1alpha1.ContainerProbeState) bool {
		return x.State == y.State && x.Message == y.Message &&
			x.LastProbeTime.Equal(&y.LastProbeTime) && x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}

func index(status v1alpha1.NodePodProbeStatus) entries {
	found := entries{}
	for i := range status.PodProbeStatuses {
		pod := &status.PodProbeStatuses[i]
		for _, entry := range pod.ProbeStates {
			found[entryID{podUID: types.UID(pod.UID), name: entry.Name}] = entry
		}
	}
	return found
}

func statesOf(reported entries) map[entryID]lastEvent {
	states := make(map[entryID]lastEvent, len(reported))
	for id, entry := range reported {
		states[id] = lastEvent{plan: entry.Plan, state: entry.State}
	}
	return states
}
