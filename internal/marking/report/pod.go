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

// nowhere is the number of the slice of a pod that has no place.
const nowhere = -1

// podRecord records what has been reported about one pod. It is immutable.
type podRecord struct {
	// number is the slice in which the pod has its place, or nowhere.
	number int
	// report is what the agent last read or wrote. Its UID is empty if there is nothing.
	report seamarkv1alpha1.PodReport
	// messages are the reports of the messages of report.Probes. It is empty after a start.
	messages []messages
	// errorAt is when an error was last reported or cleared, by the name of the probe.
	errorAt map[string]time.Time
	// granted is when changed messages of the pod last took a token of the node, and unwritten whether they
	// have not been written since.
	granted   time.Time
	unwritten bool
}

type messages struct {
	// at is when a state or message was last reported.
	at time.Time
	// tokens limits reports of changed messages.
	tokens bucket
}

// pod returns the record of a pod. It is empty if nothing was reported about the pod.
func (l Record) pod(uid string) *podRecord {
	if pod := l.pods[uid]; pod != nil {
		return pod
	}
	return &podRecord{number: nowhere}
}

// moved returns the record of the pod with another place.
func (p *podRecord) moved(number int) *podRecord {
	moved := *p
	moved.number = number
	return &moved
}

// find returns the index of a probe in the report, or -1. Most probes are found at the hint:
// reports have the order of the plan.
func (p *podRecord) find(name string, hint int) int {
	if hint < len(p.report.Probes) && p.report.Probes[hint].Name == name {
		return hint
	}
	return slices.IndexFunc(p.report.Probes, func(e v1alpha1.ContainerProbeState) bool { return e.Name == name })
}

// entry returns the reported state at an index that find returned.
func (p *podRecord) entry(at int) (v1alpha1.ContainerProbeState, bool) {
	if at < 0 {
		return v1alpha1.ContainerProbeState{}, false
	}
	return p.report.Probes[at], true
}

// planned returns the reported state of a probe that is planned with the plan value.
func (p *podRecord) planned(at int, plan string) (v1alpha1.ContainerProbeState, bool) {
	entry, found := p.entry(at)
	if !found || !identity.SamePlan(entry.Plan, plan) {
		return v1alpha1.ContainerProbeState{}, false
	}
	return entry, true
}

// messagesAt returns the reports of the messages of the probe at an index that find returned.
func (p *podRecord) messagesAt(at int) messages {
	if at < 0 || at >= len(p.messages) {
		return messages{}
	}
	return p.messages[at]
}

// error returns the reported error of a probe. Its reason is empty if there is none.
func (p *podRecord) error(name string) v1alpha1.ContainerProbeError {
	for _, e := range p.report.Errors {
		if e.Name == name {
			return e
		}
	}
	return v1alpha1.ContainerProbeError{}
}

// grant returns the record of the pod after its changed messages took a token of the node.
func (p *podRecord) grant(now time.Time) *podRecord {
	granted := *p
	granted.granted, granted.unwritten = now, true
	return &granted
}

// changedBack reports whether the state of the probe at an index that find returned has changed and
// changed back since the last report, at transition: within a second, reported times do not show the
// change. The reported transition is never newer than the report, although a wall clock that was set
// back before an agent restart makes it look so.
func (p *podRecord) changedBack(at int, transition time.Time) bool {
	entry, _ := p.entry(at)
	return transition.After(p.messagesAt(at).at) && !transition.Equal(entry.LastTransitionTime.Time)
}

// wrote returns the record of the pod after a write of its slice.
func (p *podRecord) wrote(now time.Time, number int, report seamarkv1alpha1.PodReport) *podRecord {
	next := &podRecord{number: number, report: report, messages: make([]messages, len(report.Probes)), granted: p.granted}
	for i := range report.Probes {
		entry := &report.Probes[i]
		at := p.find(entry.Name, i)
		before, reported := p.planned(at, entry.Plan)
		m := p.messagesAt(at)
		switch {
		case reported && before.State == entry.State && before.Message == entry.Message:
		case reported && before.State == entry.State && before.LastTransitionTime.Equal(&entry.LastTransitionTime):
			m = messages{at: now, tokens: m.tokens.take(now, messagesOfProbe())}
		default:
			m.at = now
		}
		next.messages[i] = m
	}
	next.errorAt = p.wroteErrors(now, next)
	return next
}

// wroteErrors returns when the errors were last reported or cleared, after a write.
func (p *podRecord) wroteErrors(now time.Time, next *podRecord) map[string]time.Time {
	at := maps.Clone(p.errorAt)
	// A cleared error is remembered until it no longer delays the next one.
	maps.DeleteFunc(at, func(name string, before time.Time) bool {
		return next.error(name).Reason == "" && now.Sub(before) >= ErrorInterval
	})
	for _, e := range slices.Concat(p.report.Errors, next.report.Errors) {
		if next.error(e.Name) != p.error(e.Name) {
			at = set(at, e.Name, now)
		}
	}
	return at
}

// equalReports reports whether two entries of pods have the same content.
func equalReports(a, b *seamarkv1alpha1.PodReport) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Namespace == b.Namespace && slices.Equal(a.Errors, b.Errors) &&
		slices.EqualFunc(a.Probes, b.Probes, func(x, y v1alpha1.ContainerProbeState) bool {
			return x.Name == y.Name && x.State == y.State && x.Message == y.Message && x.Plan == y.Plan &&
				x.ContainerID == y.ContainerID && x.LastProbeTime.Equal(&y.LastProbeTime) &&
				x.LastTransitionTime.Equal(&y.LastTransitionTime)
		})
}
