// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// Record is what the agent has reported, and in which slice it is stored. It is immutable: its methods
// return a new record. The zero value is the record of a node without slices.
type Record struct {
	// stored are the pods of each slice that is stored, as far as the agent knows.
	stored map[int][]seamarkv1alpha1.PodReport
	// unsure are the slices that Decide has returned since their last Wrote.
	unsure map[int]bool
	// pods is what is in force of each pod that is planned or stored, by UID.
	pods map[string]*podRecord
	// empty is when Decide first found that a slice has no planned pods.
	empty map[int]time.Time
	// leftPlan is when Decide first found that a stored pod with running containers is not planned.
	leftPlan map[string]time.Time
	// unchangedUntil has, by slice, until when Decide need not write it. The time is zero if that is until
	// its pods change.
	unchangedUntil map[int]time.Time
	// tokens are those of the node, for changed messages that are reported at once.
	tokens bucket
}

// Read returns the record of an agent that starts with the stored slices. If inStatus is not nil, the
// states that OpenKruise has reported in NodePodProbe.status are in force: the slices only provide the
// places of the pods, and everything in them that differs is written. The states that are in force need
// no event.
func Read(stored []Slice, inStatus []v1alpha1.PodProbeStatus) Record {
	l, numbers := Record{stored: storedOf(stored), pods: map[string]*podRecord{}}, map[string]int{}
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
			l.pods[pod.UID], numbers[pod.UID] = &podRecord{number: place, report: pod}, slice.Number
		}
	}
	if inStatus == nil {
		return l
	}
	for uid, pod := range l.pods {
		l.pods[uid] = &podRecord{number: pod.number, report: seamarkv1alpha1.PodReport{
			Namespace: pod.report.Namespace, Name: pod.report.Name, UID: uid,
		}}
	}
	for _, pod := range inStatus {
		l.pods[pod.UID] = &podRecord{number: l.pod(pod.UID).number, report: seamarkv1alpha1.PodReport{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Probes: pod.ProbeStates,
		}}
	}
	return l
}

// Adopt returns the record after the slices have been listed again, because another client has
// changed or removed some. Call it while no write is in progress. Decide compares with these
// slices and repairs them: what the agent last read or wrote stays in force, and it does not
// change which states need an event, or when messages and errors may be reported.
func (l Record) Adopt(stored []Slice) Record {
	l.stored, l.unchangedUntil = storedOf(stored), nil
	return l
}

// Wrote returns the record after a write of a slice. The other slices are not affected, so
// slices can be written in parallel and some may fail.
func (l Record) Wrote(now time.Time, w Write) Record {
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
		l.pods = set(l.pods, pod.UID, l.pod(pod.UID).wrote(now, w.Number, pod))
	}
	return l
}

// Slices returns the number of stored slices.
func (l Record) Slices() int { return len(l.stored) }

// Events returns the events of a slice that has been written, in the order of the plan. Call
// it before Wrote. Unknown causes no event, and neither does a state that is reported again.
func (l Record) Events(plan Plan, w Write) []Event {
	var events []Event
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		at := slices.IndexFunc(w.Pods, func(p seamarkv1alpha1.PodReport) bool { return p.UID == pod.UID })
		if at < 0 {
			continue
		}
		written, known := &podRecord{report: w.Pods[at]}, l.pod(pod.UID)
		for j := range pod.Probes {
			probe := &pod.Probes[j]
			entry, found := written.entry(written.find(probe.Name, j))
			before, _ := known.entry(known.find(probe.Name, j))
			again := entry.State == before.State && identity.SamePlan(entry.Plan, before.Plan)
			if !found || again || entry.State == v1alpha1.ProbeUnknown {
				continue
			}
			events = append(events, Event{Pod: pod, Probe: probe, State: entry.State, Message: entry.Message})
		}
	}
	return events
}

// Errors returns how many planned probes have a reported error with the reason.
func (l Record) Errors(plan Plan, reason v1alpha1.ProbeErrorReason) int {
	n := 0
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		reported := l.pod(pod.UID)
		for j := range pod.Probes {
			if reported.error(pod.Probes[j].Name).Reason == reason {
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

// Unnumbered is the number of an entry that is not in a slice with a valid name.
const Unnumbered = math.MaxInt

// Entry is what one object reports about a pod.
type Entry struct {
	// Number is the number of the slice (see NumberOf), or Unnumbered.
	Number int
	// States are the reported states. They must not be modified.
	States []v1alpha1.ContainerProbeState
}

// Precedes reports whether the entry takes effect and the other entry of the same pod does not: it
// has the newer transition, or else the newer result, or else the lower number. A pod has two
// entries if an agent stopped between two writes. Of entries with equal times and numbers, none precedes.
//
// Agents and managers must not differ in this: a mark would depend on who reads the report.
func (e Entry) Precedes(other Entry) bool {
	transition, result := newest(e.States)
	otherTransition, otherResult := newest(other.States)
	return cmp.Or(
		transition.Compare(otherTransition), result.Compare(otherResult), cmp.Compare(other.Number, e.Number),
	) > 0
}

func newest(entries []v1alpha1.ContainerProbeState) (transition, result time.Time) {
	for i := range entries {
		if t := entries[i].LastTransitionTime.Time; t.After(transition) {
			transition = t
		}
		if t := entries[i].LastProbeTime.Time; t.After(result) {
			result = t
		}
	}
	return transition, result
}

// Restore returns the reported states of the planned probes. An agent starts from them.
func Restore(plan Plan, record Record) States {
	states := States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		reported := record.pod(pod.UID)
		for j := range pod.Probes {
			planned := &pod.Probes[j]
			key, err := identity.KeyOf(pod, planned)
			if err != nil {
				continue
			}
			problem := reported.error(planned.Name)
			state := thresholds.State{Problem: thresholds.Problem{Reason: problem.Reason, Message: problem.Message}}
			if entry, _ := reported.planned(reported.find(planned.Name, j), planned.Plan); isState(entry.State) {
				state.State, state.Message, state.ContainerID = entry.State, entry.Message, entry.ContainerID
				state.LastProbe, state.LastTransition = entry.LastProbeTime.Time, entry.LastTransitionTime.Time
			}
			if state != (thresholds.State{}) {
				states[key] = state
			}
		}
	}
	return states
}

func isState(s v1alpha1.ProbeState) bool {
	return s == v1alpha1.ProbeSucceeded || s == v1alpha1.ProbeFailed || s == v1alpha1.ProbeUnknown
}
