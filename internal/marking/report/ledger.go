// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Ledger records what has been reported, and where it is stored. It is immutable: its methods
// return a new ledger. The zero ledger is that of a node without slices.
type Ledger struct {
	// stored are the pods of each slice that is stored, as far as the agent knows.
	stored map[int][]seamarkv1alpha1.PodReport
	// unsure are the slices that Decide has returned since their last Wrote.
	unsure map[int]bool
	// pods is what is in force of each pod that is planned or stored, by UID.
	pods map[string]*podLedger
	// empty is when Decide first found that a slice has no planned pods.
	empty map[int]time.Time
	// left is when Decide first found that a stored pod with running containers is not planned.
	left map[string]time.Time
	// settled are the slices that Decide found no need to write, until the time. It is zero if there
	// is no need until their pods change.
	settled map[int]time.Time
}

// Read returns the ledger of an agent that starts with the stored slices. If legacy is not
// nil, the states and errors in NodePodProbe.status are in force: the slices only provide the
// places of the pods, and everything in them that differs is written. The states that are in
// force need no event.
func Read(stored []Slice, legacy []v1alpha1.PodProbeStatus) Ledger {
	l, numbers := Ledger{stored: storedOf(stored), pods: map[string]*podLedger{}}, map[string]int{}
	for _, slice := range stored {
		for _, pod := range slice.Pods {
			before, twice := l.pods[pod.UID]
			if twice && !(Entry{Number: slice.Number, States: pod.Probes}).Precedes(Entry{Number: numbers[pod.UID], States: before.report.Probes}) {
				continue
			}
			place := slice.Number
			if place < 0 || place >= MaxSlices {
				place = nowhere
			}
			l.pods[pod.UID], numbers[pod.UID] = &podLedger{number: place, report: pod}, slice.Number
		}
	}
	if legacy == nil {
		return l
	}
	for uid, pod := range l.pods {
		l.pods[uid] = &podLedger{number: pod.number, report: seamarkv1alpha1.PodReport{
			Namespace: pod.report.Namespace, Name: pod.report.Name, UID: uid,
		}}
	}
	for _, pod := range legacy {
		l.pods[pod.UID] = &podLedger{number: l.pods[pod.UID].place(), report: seamarkv1alpha1.PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Probes: pod.ProbeStates, Errors: pod.ProbeErrors,
		}}
	}
	return l
}

// Adopt returns the ledger after the slices have been listed again, because another client has
// changed or removed some. Call it while no write is in progress. Decide compares with these
// slices and repairs them: what the agent last read or wrote stays in force, and it does not
// change which states need an event, or when messages and errors may be reported.
func (l Ledger) Adopt(stored []Slice) Ledger {
	l.stored, l.settled = storedOf(stored), nil
	return l
}

// Wrote returns the ledger after a write of a slice. The other slices are not affected, so
// slices can be written in parallel and some may fail.
func (l Ledger) Wrote(now time.Time, w Write) Ledger {
	l.stored, l.unsure = maps.Clone(l.stored), maps.Clone(l.unsure)
	delete(l.unsure, w.Number)
	if w.Delete {
		delete(l.stored, w.Number)
		l.empty = maps.Clone(l.empty)
		delete(l.empty, w.Number)
		return l
	}
	l.stored = set(l.stored, w.Number, w.Pods)
	l.pods = maps.Clone(l.pods)
	for _, pod := range w.Pods {
		l.pods = set(l.pods, pod.UID, l.pods[pod.UID].wrote(now, w.Number, pod))
	}
	return l
}

// Slices returns the number of stored slices.
func (l Ledger) Slices() int { return len(l.stored) }

// MessageDue returns when a changed message of a probe may be reported while the state stays
// the same: when its bucket has a token. If the state has changed and changed back since the
// last report, at transition, the message is due immediately: within a second, reported times
// do not show the change. The reported transition is never newer than the report, although a
// wall clock that was set back before an agent restart makes it look so.
func (l Ledger) MessageDue(key probeid.Key, transition time.Time) time.Time {
	pod := l.pods[string(key.PodUID)]
	return pod.messageDue(pod.find(key.String(), 0), transition)
}

// Events returns the events of a slice that has been written, in the order of the plan. Call
// it before Wrote. Unknown causes no event, and neither does a state that is reported again.
func (l Ledger) Events(plan Plan, w Write) []Event {
	var events []Event
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		at := slices.IndexFunc(w.Pods, func(p seamarkv1alpha1.PodReport) bool { return p.UID == pod.UID })
		if at < 0 {
			continue
		}
		written, known := &podLedger{report: w.Pods[at]}, l.pods[pod.UID]
		for j := range pod.Probes {
			probe := &pod.Probes[j]
			entry, found := written.entry(written.find(probe.Name, j))
			before, _ := known.entry(known.find(probe.Name, j))
			again := entry.State == before.State && probeid.SamePlan(entry.Plan, before.Plan)
			if !found || again || entry.State == v1alpha1.ProbeUnknown {
				continue
			}
			events = append(events, Event{Pod: pod, Probe: probe, State: entry.State, Message: entry.Message})
		}
	}
	return events
}

// Errors returns how many planned probes have a reported error with the reason.
func (l Ledger) Errors(plan Plan, reason v1alpha1.ProbeErrorReason) int {
	n := 0
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			if l.pods[pod.UID].error(pod.Probes[j].Name).Reason == reason {
				n++
			}
		}
	}
	return n
}

// storedOf indexes the slices. Two slices with one number are one.
func storedOf(stored []Slice) map[int][]seamarkv1alpha1.PodReport {
	indexed := make(map[int][]seamarkv1alpha1.PodReport, len(stored))
	for _, slice := range stored {
		if slice.Number >= 0 {
			indexed[slice.Number] = slices.Concat(indexed[slice.Number], slice.Pods)
		}
	}
	return indexed
}

// set sets a key of a map, which may be nil.
func set[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}
