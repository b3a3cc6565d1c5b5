// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/fair"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/text"
)

const (
	// ErrorDelay is how long a problem must last before it is reported. An exec that fails
	// because its container ends is over earlier.
	ErrorDelay = 3 * time.Second

	// ErrorInterval is the minimum time between two reports of a probe that differ only in
	// whether it has an error or in the reason.
	ErrorInterval = time.Minute

	// ErrorTextInterval is the minimum time between two reports of a probe that differ only
	// in the message of an error.
	ErrorTextInterval = 10 * time.Minute

	// maxErrorBytes is the maximum length of the message of an error.
	maxErrorBytes = 256

	// minErrorBudget is the budget of all errors of a node, in encoded bytes, if the states
	// leave less than twice as much of the budget of the report.
	minErrorBudget = 32 << 10

	// errorBytes is the maximum encoded bytes of an error, and of its share of the list of the
	// pod, without the name and the message.
	errorBytes = len(`,"probeErrors":[]{"name":"","reason":"WaitingForSlot","message":""},`)
)

// errors returns the errors of each pod of the plan, and their encoded bytes. Namespaces share
// the budget. In a namespace, the first errors that fit are reported.
func (d *decider) errors(plan Plan, budget int) (errs [][]v1alpha1.ContainerProbeError, bytes int) {
	errs = make([][]v1alpha1.ContainerProbeError, len(plan.Pods))
	demands, used := map[string]int{}, map[string]int{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		errs[i] = d.podErrors(pod)
		for _, e := range errs[i] {
			demands[pod.Namespace] += encodedError(e)
		}
	}
	share := fair.Share(demands, budget)
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		errs[i] = slices.DeleteFunc(errs[i], func(e v1alpha1.ContainerProbeError) bool {
			if used[pod.Namespace]+encodedError(e) > share {
				return true
			}
			used[pod.Namespace] += encodedError(e)
			bytes += encodedError(e)
			return false
		})
		if len(errs[i]) == 0 {
			errs[i] = nil
		}
		d.write = d.write || d.changed(pod, errs[i])
	}
	return errs, bytes
}

func encodedError(e v1alpha1.ContainerProbeError) int {
	return errorBytes + len(e.Name) + encodedBytes(e.Message)
}

// changed reports whether the errors of a pod differ from the reported ones.
func (d *decider) changed(pod *v1alpha1.PodProbe, errs []v1alpha1.ContainerProbeError) bool {
	same := 0
	for _, e := range errs {
		if d.ledger.errors[entryID{podUID: types.UID(pod.UID), name: e.Name}] != e {
			return true
		}
		same++
	}
	for i := range pod.Probes {
		if d.ledger.errors[entryID{podUID: types.UID(pod.UID), name: pod.Probes[i].Name}].Reason != "" {
			same--
		}
	}
	return same != 0
}

// podErrors returns the errors of one pod's probes.
func (d *decider) podErrors(pod *v1alpha1.PodProbe) []v1alpha1.ContainerProbeError {
	var errs []v1alpha1.ContainerProbeError
	for i := range pod.Probes {
		key, err := probeid.KeyOf(pod, &pod.Probes[i])
		if err != nil {
			continue
		}
		if entry := d.error(key); entry.Reason != "" {
			errs = append(errs, entry)
		}
	}
	return errs
}

// error returns the current or the reported error of a probe. Its reason is empty if there
// is none.
func (d *decider) error(key probeid.Key) v1alpha1.ContainerProbeError {
	id := entryOfKey(key)
	reported := d.ledger.errors[id]
	state, known := d.states[key]
	if !known {
		return reported
	}
	fresh := errorOf(key.String(), state.Problem)
	due := d.ledger.errorAt[id]
	switch {
	case fresh == reported:
		return reported
	case fresh.Reason == reported.Reason:
		due = due.Add(ErrorTextInterval)
	case fresh.Reason == "":
		due = due.Add(ErrorInterval)
	default:
		due = due.Add(ErrorInterval)
		if lasts := state.Problem.Since.Add(ErrorDelay); lasts.After(due) {
			due = lasts
		}
	}
	if due.After(d.now) {
		d.again(due)
		return reported
	}
	return fresh
}

// errorOf returns the entry of a problem; it is empty if there is none.
func errorOf(name string, problem streak.Problem) v1alpha1.ContainerProbeError {
	if problem.Reason == "" {
		return v1alpha1.ContainerProbeError{}
	}
	return v1alpha1.ContainerProbeError{
		Name: name, Reason: problem.Reason, Message: text.Truncate(problem.Message, maxErrorBytes),
	}
}

func indexErrors(status v1alpha1.NodePodProbeStatus) map[entryID]v1alpha1.ContainerProbeError {
	errs := map[entryID]v1alpha1.ContainerProbeError{}
	for i := range status.PodProbeStatuses {
		pod := &status.PodProbeStatuses[i]
		for _, entry := range pod.ProbeErrors {
			errs[entryID{podUID: types.UID(pod.UID), name: entry.Name}] = entry
		}
	}
	return errs
}

// wroteErrors returns when the error of each probe was last reported, after a write.
func (l Ledger) wroteErrors(now time.Time, errs map[entryID]v1alpha1.ContainerProbeError) map[entryID]time.Time {
	at := make(map[entryID]time.Time, len(errs))
	for id, before := range l.errorAt {
		// A cleared error is remembered until it no longer delays the next one.
		if _, stays := errs[id]; stays || now.Sub(before) < ErrorInterval {
			at[id] = before
		}
	}
	for id, entry := range errs {
		if l.errors[id] != entry {
			at[id] = now
		}
	}
	for id := range l.errors {
		if _, stays := errs[id]; !stays {
			at[id] = now
		}
	}
	return at
}

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

// NewAnnouncer returns an announcer that starts with a stored status at now. The errors in it
// got their event before.
func NewAnnouncer(now time.Time, status v1alpha1.NodePodProbeStatus) *Announcer {
	a := &Announcer{announced: map[entryID]errorEvent{}}
	for id, entry := range indexErrors(status) {
		a.announced[id] = errorEvent{reason: entry.Reason, at: now, repeat: RepeatFirst}
	}
	return a
}

// Due returns the events that are due at now for the errors of a status that has been
// written, in the order of the plan, and when the next event is due if the errors stay. The
// time is zero if there are no errors.
func (a *Announcer) Due(now time.Time, plan Plan, status v1alpha1.NodePodProbeStatus) (events []Event, next time.Time) {
	errs := indexErrors(status)
	planned := map[entryID]bool{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			id := entryID{podUID: types.UID(pod.UID), name: pod.Probes[j].Name}
			planned[id] = true
			entry, found := errs[id]
			if !found {
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
		if _, stays := errs[id]; !planned[id] || !stays && now.Sub(last.at) >= last.repeat {
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
