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

// entryID identifies a probe as a status does: without its container.
type entryID struct {
	podUID types.UID
	// name is the wire form, marker#probe.
	name string
}

func entryOfKey(key probeid.Key) entryID { return entryID{podUID: key.PodUID, name: key.String()} }

// Ledger is what has been reported. It is a value: its methods return another and leave
// it as it was.
type Ledger struct {
	status    v1alpha1.NodePodProbeStatus
	entries   map[entryID]v1alpha1.ContainerProbeState
	messageAt map[entryID]time.Time
	// told are the states that events have spoken of, or need not.
	told map[entryID]v1alpha1.ProbeState
}

// Read starts a ledger from the status that an agent finds at its start. Its states are
// no news.
func Read(status v1alpha1.NodePodProbeStatus) Ledger {
	entries := index(status)
	return Ledger{status: status, entries: entries, told: statesOf(entries)}
}

// Adopt returns the ledger after somebody else has changed or emptied the status: what
// stands there now is compared with, but is no news about any probe.
func (l Ledger) Adopt(status v1alpha1.NodePodProbeStatus) Ledger {
	l.status, l.entries = status, index(status)
	return l
}

// Wrote returns the ledger after status has been written at now.
func (l Ledger) Wrote(now time.Time, status v1alpha1.NodePodProbeStatus) Ledger {
	entries := index(status)
	messageAt := make(map[entryID]time.Time, len(entries))
	for id, entry := range entries {
		before, reported := l.entries[id]
		if reported && before.State == entry.State && before.Message == entry.Message {
			if at, found := l.messageAt[id]; found {
				messageAt[id] = at
			}
			continue
		}
		messageAt[id] = now
	}
	return Ledger{status: status, entries: entries, messageAt: messageAt, told: statesOf(entries)}
}

// Status returns what stands reported.
func (l Ledger) Status() v1alpha1.NodePodProbeStatus { return l.status }

// MessageDue returns when a probe's message may be reported again while its state stays
// as reported. Where the state has left and come back since, at transition, that is at
// once: within one second, the times on the wire don't tell the one state from the other.
func (l Ledger) MessageDue(key probeid.Key, transition time.Time) time.Time {
	at, found := l.messageAt[entryOfKey(key)]
	if !found || transition.After(at) {
		return time.Time{}
	}
	return at.Add(MessageInterval)
}

// Event is a change of a reported state that the pod's users are told of.
type Event struct {
	// Pod is the planned pod.
	Pod *v1alpha1.PodProbe
	// Probe is the planned probe.
	Probe *v1alpha1.ContainerProbe
	// State is Succeeded or Failed.
	State v1alpha1.ProbeState
	// Message is the one reported with it.
	Message string
}

// Events returns what status, once written, changes in the states reported before, in
// the plan's order. Unknown is no event, and neither is a state that is reported again.
func (l Ledger) Events(plan Plan, status v1alpha1.NodePodProbeStatus) []Event {
	entries := index(status)
	var events []Event
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			id := entryID{podUID: types.UID(pod.UID), name: pod.Probes[j].Name}
			entry, found := entries[id]
			if !found || entry.State == l.told[id] || entry.State == v1alpha1.ProbeUnknown {
				continue
			}
			events = append(events, Event{Pod: pod, Probe: &pod.Probes[j], State: entry.State, Message: entry.Message})
		}
	}
	return events
}

// SameStates tells whether two statuses report the same of the same probes. It leaves
// out the fields that are Seamark's own, which an API server with upstream's CRDs drops.
func SameStates(a, b v1alpha1.NodePodProbeStatus) bool {
	return maps.EqualFunc(index(a), index(b), func(x, y v1alpha1.ContainerProbeState) bool {
		return x.State == y.State && x.Message == y.Message &&
			x.LastProbeTime.Equal(&y.LastProbeTime) && x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}

func index(status v1alpha1.NodePodProbeStatus) map[entryID]v1alpha1.ContainerProbeState {
	entries := map[entryID]v1alpha1.ContainerProbeState{}
	for i := range status.PodProbeStatuses {
		pod := &status.PodProbeStatuses[i]
		for _, entry := range pod.ProbeStates {
			entries[entryID{podUID: types.UID(pod.UID), name: entry.Name}] = entry
		}
	}
	return entries
}

func statesOf(entries map[entryID]v1alpha1.ContainerProbeState) map[entryID]v1alpha1.ProbeState {
	states := make(map[entryID]v1alpha1.ProbeState, len(entries))
	for id, entry := range entries {
		states[id] = entry.State
	}
	return states
}
