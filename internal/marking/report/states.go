// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

// member is a planned pod of a slice.
type member struct {
	pod    *v1alpha1.PodProbe
	record *podRecord
	budget budget
	// probes are the planned probes with a valid name.
	probes []candidate
}

// candidate is a planned probe, with or without a state to report.
type candidate struct {
	planned *v1alpha1.ContainerProbe
	// state is the current state if known is set. Otherwise the reported state stays.
	state thresholds.State
	known bool
	// reported is the reported entry if wasReported is set. at is its index in the record,
	// also if it is the entry of an earlier marker.
	reported    v1alpha1.ContainerProbeState
	wasReported bool
	at          int
}

func (c candidate) hasState() bool {
	return c.known && c.state.State != "" || !c.known && c.wasReported
}

// gather returns a pod of the plan with what is known about its probes.
func (d *decider) gather(i int) member {
	m := member{pod: &d.plan.Pods[i], record: d.pods[i], budget: budgetOf(&d.plan.Pods[i])}
	m.probes = make([]candidate, 0, len(m.pod.Probes))
	hint := 0
	for j := range m.pod.Probes {
		c := candidate{planned: &m.pod.Probes[j]}
		key, err := identity.KeyOf(m.pod, c.planned)
		if err != nil {
			continue
		}
		if c.at = m.record.find(c.planned.Name, hint); c.at >= 0 {
			hint = c.at + 1
		}
		c.reported, c.wasReported = m.record.planned(c.at, c.planned.Plan)
		c.state, c.known = d.states[key]
		m.probes = append(m.probes, c)
	}
	return m
}

type sliceDecider struct {
	now time.Time
	// tokenDue is when the node has a token for changed messages.
	tokenDue time.Time
	members  []member
	// write reports whether to write the slice, and next is when to decide again.
	write bool
	next  time.Time
}

// recheck schedules another decision.
func (s *sliceDecider) recheck(at time.Time) { s.next = earliest.Time(s.next, at) }

func (s *sliceDecider) decide() []seamarkv1alpha1.PodReport {
	pods := make([]seamarkv1alpha1.PodReport, 0, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		report := seamarkv1alpha1.PodReport{Namespace: m.pod.Namespace, Name: m.pod.Name, UID: m.pod.UID, Errors: s.errors(m)}
		report.Probes = s.states(m, m.budget.limit(report.Errors))
		s.write = s.write || !sameShape(&report, &m.record.report)
		pods = append(pods, report)
	}
	return pods
}

// states returns the entries of one pod's probes, with messages of at most limit encoded bytes. Those
// that were reported have the limit of the reported errors, so a change of the limit alone is not a
// change of the messages.
func (s *sliceDecider) states(m *member, limit int) []v1alpha1.ContainerProbeState {
	before := m.budget.limit(m.record.report.Errors)
	var entries []v1alpha1.ContainerProbeState
	for i := range m.probes {
		if m.probes[i].hasState() {
			entry := s.state(m, &m.probes[i], before)
			entry.Message = m.probes[i].shorten(entry.Message, limit)
			entries = append(entries, entry)
		}
	}
	return entries
}

// state returns the current or the reported entry of a probe. The plan value in the entry is
// always the current one. Before is the limit of the reported message.
func (s *sliceDecider) state(m *member, c *candidate, before int) v1alpha1.ContainerProbeState {
	if !c.known {
		return c.reported
	}
	fresh, reported := entryOf(c.planned, c.state), c.reported
	reported.Plan = fresh.Plan
	switch c.news(m.record, before) {
	case newNothing:
		reported.Message = fresh.Message
		return reported
	case newMessage:
		if due := s.messageDue(m, c); due.After(s.now) {
			s.recheck(due)
			return reported
		}
	case newState:
	}
	s.write = true
	return fresh
}

// messageDue returns when a message that has changed in the same state may be reported.
func (s *sliceDecider) messageDue(m *member, c *candidate) time.Time {
	switch {
	case !c.isImmediate():
		return m.record.messagesAt(c.at).tokens.due(messagesOfProbe())
	case m.record.unwritten:
		return time.Time{}
	default:
		return s.tokenDue
	}
}

// news is what of a probe has changed since the last report.
type news int

const (
	// newNothing means that the entry stays as it is.
	newNothing news = iota
	// newMessage means that the message has changed, which needs a token.
	newMessage
	// newState means that a change is reported at once.
	newState
)

// news returns what of a probe with a current state has changed. Before is the limit of the reported
// message.
func (c *candidate) news(record *podRecord, before int) news {
	state, reported := &c.state, &c.reported
	// A later agent compares the container with the reported one: if they differ, the state starts again.
	if !c.wasReported || state.ContainerID != reported.ContainerID || state.State != reported.State ||
		!wireTime(state.LastTransition).Time.Equal(reported.LastTransitionTime.Time) {
		return newState
	}
	now, last := c.shorten(state.Message, before), c.shorten(reported.Message, before)
	switch {
	case now == last:
		return newNothing
	case c.hasOtherValues(state.State, now, last), record.changedBack(c.at, state.LastTransition):
		return newState
	default:
		return newMessage
	}
}

// isImmediate reports whether changed messages of the probe are reported at once.
func (c *candidate) isImmediate() bool {
	return c.planned.MessageUpdates == v1alpha1.MessageUpdatesImmediate
}

// needsToken reports whether the pod has a changed message that needs a token of the node.
func (m *member) needsToken() bool {
	if m.record.unwritten {
		return false
	}
	before := m.budget.limit(m.record.report.Errors)
	return slices.ContainsFunc(m.probes, func(c candidate) bool {
		return c.isImmediate() && c.known && c.news(m.record, before) == newMessage
	})
}

// sameShape reports whether two entries of a pod have the same errors, and the same probes in the
// same order.
func sameShape(a, b *seamarkv1alpha1.PodReport) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && a.UID == b.UID && slices.Equal(a.Errors, b.Errors) &&
		slices.EqualFunc(a.Probes, b.Probes, func(x, y v1alpha1.ContainerProbeState) bool { return x.Name == y.Name })
}

// entryOf returns the entry of a planned probe's state. Its times are whole seconds.
func entryOf(planned *v1alpha1.ContainerProbe, state thresholds.State) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name:               planned.Name,
		State:              state.State,
		LastProbeTime:      wireTime(state.LastProbe),
		LastTransitionTime: wireTime(state.LastTransition),
		Message:            state.Message,
		Plan:               planned.Plan,
		ContainerID:        state.ContainerID,
	}
}

func wireTime(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}
