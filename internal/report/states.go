// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
)

// member is a planned pod of a slice.
type member struct {
	pod    *v1alpha1.PodProbe
	ledger *podLedger
	// probes are the planned probes with a valid name.
	probes []candidate
}

// candidate is a planned probe, with or without a state to report.
type candidate struct {
	planned *v1alpha1.ContainerProbe
	// state is the current state if known is set. Otherwise the reported state stays.
	state streak.State
	known bool
	// reported is the reported entry if wasReported is set. at is its index in the ledger,
	// also if it is the entry of an earlier marker.
	reported    v1alpha1.ContainerProbeState
	wasReported bool
	at          int
}

// hasState reports whether there is a state to report.
func (c candidate) hasState() bool {
	return c.known && c.state.State != "" || !c.known && c.wasReported
}

// gather returns a pod of the plan with what is known about its probes.
func (d *decider) gather(i int) member {
	m := member{pod: &d.plan.Pods[i], ledger: d.pods[i]}
	m.probes = make([]candidate, 0, len(m.pod.Probes))
	hint := 0
	for j := range m.pod.Probes {
		c := candidate{planned: &m.pod.Probes[j]}
		key, err := probeid.KeyOf(m.pod, c.planned)
		if err != nil {
			continue
		}
		if c.at = m.ledger.find(c.planned.Name, hint); c.at >= 0 {
			hint = c.at + 1
		}
		c.reported, c.wasReported = m.ledger.of(c.at, c.planned.Plan)
		c.state, c.known = d.states[key]
		m.probes = append(m.probes, c)
	}
	return m
}

// sliceDecider decides on the content of one slice.
type sliceDecider struct {
	now     time.Time
	members []member
	// limits are those of the messages to write. before are those of the reported messages, so
	// that a change of the limits alone is not a change of the messages.
	limits, before limits
	// write reports whether to write the slice, and next is when to decide again.
	write bool
	next  time.Time
}

// again schedules another decision.
func (s *sliceDecider) again(at time.Time) { s.next = earlier(s.next, at) }

// decide returns the entries of the pods.
func (s *sliceDecider) decide() []seamarkv1alpha1.PodReport {
	free := s.free()
	errs, errBytes := s.errors(max(free/2, minErrorBudget))
	messages := lengths{}
	for i := range s.members {
		m := &s.members[i]
		for j := range m.probes {
			if c := &m.probes[j]; c.hasState() {
				messages.add(m.pod.Namespace, longer(c.state.Message, c.reported.Message))
			}
		}
	}
	s.limits = limitsOf(messages, free-errBytes)
	if s.before == nil {
		s.before = s.limits
	}
	pods := make([]seamarkv1alpha1.PodReport, 0, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		report := seamarkv1alpha1.PodReport{
			Namespace: m.pod.Namespace, Name: m.pod.Name, UID: m.pod.UID, Probes: s.pod(m), Errors: errs[i],
		}
		s.write = s.write || m.ledger == nil || !sameShape(&report, &m.ledger.report)
		pods = append(pods, report)
	}
	return pods
}

// free returns what the pods and states leave of the budget for messages and errors. It is
// negative if they exceed the budget.
func (s *sliceDecider) free() int {
	free := MaxBytes - restBytes
	for i := range s.members {
		pod := s.members[i].pod
		free -= podBytes + len(pod.Name) + len(pod.Namespace) + len(pod.UID)
		for j := range s.members[i].probes {
			if c := &s.members[i].probes[j]; c.hasState() {
				free -= stateBytes + len(c.planned.Name) + len(c.planned.Plan) +
					max(len(c.state.ContainerID), len(c.reported.ContainerID))
			}
		}
	}
	return free
}

// pod returns the entries of one pod's probes.
func (s *sliceDecider) pod(m *member) []v1alpha1.ContainerProbeState {
	var entries []v1alpha1.ContainerProbeState
	for i := range m.probes {
		if !m.probes[i].hasState() {
			continue
		}
		entry := s.probe(m, &m.probes[i])
		entry.Message = s.limits.message(m.pod.Namespace, entry.Message)
		entries = append(entries, entry)
	}
	return entries
}

// probe returns the current or the reported entry of a probe. The identity in the entry is
// always the current one.
func (s *sliceDecider) probe(m *member, c *candidate) v1alpha1.ContainerProbeState {
	if !c.known {
		return c.reported
	}
	fresh, reported := entryOf(c.planned, c.state), c.reported
	reported.Plan, reported.ContainerID = fresh.Plan, fresh.ContainerID
	if !c.wasReported || fresh.State != reported.State || !fresh.LastTransitionTime.Equal(&reported.LastTransitionTime) {
		s.write = true
		return fresh
	}
	if s.before.message(m.pod.Namespace, fresh.Message) == reported.Message {
		reported.Message = fresh.Message
		return reported
	}
	if due := m.ledger.messageDue(c.at, c.state.LastTransition); due.After(s.now) {
		s.again(due)
		return reported
	}
	s.write = true
	return fresh
}

// sameShape reports whether two entries of a pod have the same probes in the same order.
func sameShape(a, b *seamarkv1alpha1.PodReport) bool {
	if a.Name != b.Name || a.Namespace != b.Namespace || a.UID != b.UID || len(a.Probes) != len(b.Probes) {
		return false
	}
	for i := range a.Probes {
		if a.Probes[i].Name != b.Probes[i].Name {
			return false
		}
	}
	return true
}

// entryOf returns the entry of a planned probe's state. Its times are whole seconds.
func entryOf(planned *v1alpha1.ContainerProbe, state streak.State) v1alpha1.ContainerProbeState {
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
