// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report decides what one node's agent says, and when. From the plan in force,
// the states known and the ledger of what was said before, Decide derives the whole
// NodePodProbe status and whether it is worth a write.
//
// Its rules:
//
//   - the status follows the plan: its order, its pods, its probes, and nothing else;
//   - a change of state or of the plan is reported at once;
//   - a message that changes while the state stays, at most once in MessageInterval;
//   - the time of the last probe alone, at most once in RefreshInterval, and for all
//     probes of the node together;
//   - an entry that is not yet due stays as it was reported, whatever else is written, so
//     that a report of one probe is no news of the others.
package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/text"
)

const (
	// MessageInterval is the least time between two reports of one probe that differ in
	// the message only.
	MessageInterval = 5 * time.Second

	// RefreshInterval is the least time between two reports of one probe that differ in
	// the time of the last probe only.
	RefreshInterval = 10 * time.Minute

	// refreshSlack is how much longer than RefreshInterval a probe may wait for others,
	// so that one write refreshes them all.
	refreshSlack = time.Minute

	// messageBudget bounds all messages of a node together, in bytes. An object is stored
	// as a whole and etcd refuses more than 1.5 MiB.
	messageBudget = 512 << 10

	// minMessageBytes is left of a message however many there are.
	minMessageBytes = 64
)

// Plan is what a node's agent has in force.
type Plan struct {
	// Generation is the NodePodProbe's.
	Generation int64
	// Pods are those of its spec.
	Pods []v1alpha1.PodProbe
}

// Probes returns how many probes the plan has.
func (p Plan) Probes() int {
	n := 0
	for i := range p.Pods {
		n += len(p.Pods[i].Probes)
	}
	return n
}

// States are the states known on the node. A probe that has an entry with an empty state
// has had no result; one that has no entry is not known yet, and what was reported of it
// stands.
type States map[probeid.Key]streak.State

// Decision is what to do now.
type Decision struct {
	// Status is the whole status to be written.
	Status v1alpha1.NodePodProbeStatus
	// Write is whether it is worth a write now.
	Write bool
	// Next is when to decide again if nothing changes until then, supposing that what
	// is decided now gets done. Zero if never.
	Next time.Time
}

// Decide derives the status from plan, ledger and states, and tells whether to write it
// now. Names of the plan that don't parse are left out.
func Decide(now time.Time, plan Plan, ledger Ledger, states States) Decision {
	d := decider{now: now, ledger: ledger, states: states, limit: messageLimit(plan.Probes())}
	status := v1alpha1.NodePodProbeStatus{
		ObservedGeneration: plan.Generation,
		Pods:               int32(len(plan.Pods)),
		Probes:             int32(plan.Probes()),
	}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		if entries := d.pod(pod); len(entries) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, v1alpha1.PodProbeStatus{
				Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ProbeStates: entries,
			})
		}
	}
	return Decision{Status: status, Write: d.write || !sameShape(&status, &ledger.status), Next: d.next}
}

// decider goes through the probes of one plan.
type decider struct {
	now    time.Time
	ledger Ledger
	states States
	limit  int

	write bool
	next  time.Time
}

// pod returns the entries of one pod's probes.
func (d *decider) pod(pod *v1alpha1.PodProbe) []v1alpha1.ContainerProbeState {
	var entries []v1alpha1.ContainerProbeState
	for i := range pod.Probes {
		planned := &pod.Probes[i]
		key, err := probeid.KeyOf(pod, planned)
		if err != nil {
			continue
		}
		reported, wasReported := d.ledger.entries[entryOfKey(key)]
		state, known := d.states[key]
		switch {
		case !known && wasReported:
			entries = append(entries, reported)
		case known && state.State != "":
			entries = append(entries, d.probe(key, state, reported, wasReported))
		}
	}
	return entries
}

// probe chooses between what is known of a probe and what was reported of it.
func (d *decider) probe(
	key probeid.Key, state streak.State, reported v1alpha1.ContainerProbeState, wasReported bool,
) v1alpha1.ContainerProbeState {
	fresh := entryOf(key.String(), state, d.limit)
	if !wasReported || fresh.State != reported.State || !fresh.LastTransitionTime.Equal(&reported.LastTransitionTime) {
		d.write = true
		return fresh
	}
	if fresh.Message != reported.Message {
		if due := d.ledger.MessageDue(key, state.LastTransition); due.After(d.now) {
			d.again(due)
			return reported
		}
		d.write = true
		return fresh
	}
	lag := fresh.LastProbeTime.Sub(reported.LastProbeTime.Time)
	if lag >= RefreshInterval+refreshSlack {
		d.write = true
	}
	if lag >= RefreshInterval {
		return fresh
	}
	return reported
}

// again asks for another decision at a time.
func (d *decider) again(at time.Time) {
	if d.next.IsZero() || at.Before(d.next) {
		d.next = at
	}
}

// Restore reads back the states that status reports of the planned probes: those that an
// agent starts from.
func Restore(plan Plan, status v1alpha1.NodePodProbeStatus) States {
	reported := index(status)
	states := States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			entry, found := reported[entryID{podUID: types.UID(pod.UID), name: pod.Probes[j].Name}]
			key, err := probeid.KeyOf(pod, &pod.Probes[j])
			if !found || err != nil || !isState(entry.State) {
				continue
			}
			states[key] = streak.State{
				State:          entry.State,
				Message:        entry.Message,
				LastProbe:      entry.LastProbeTime.Time,
				LastTransition: entry.LastTransitionTime.Time,
			}
		}
	}
	return states
}

func isState(s v1alpha1.ProbeState) bool {
	return s == v1alpha1.ProbeSucceeded || s == v1alpha1.ProbeFailed || s == v1alpha1.ProbeUnknown
}

// entryOf writes a state as it goes on the wire, where times are whole seconds.
func entryOf(name string, state streak.State, limit int) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name:               name,
		State:              state.State,
		LastProbeTime:      wireTime(state.LastProbe),
		LastTransitionTime: wireTime(state.LastTransition),
		Message:            text.Truncate(state.Message, limit),
	}
}

func wireTime(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.Truncate(time.Second))
}

// messageLimit returns how many bytes each of n messages may have. On most nodes that is
// more than a message ever has.
func messageLimit(n int) int {
	return max(messageBudget/max(n, 1), minMessageBytes)
}

// sameShape tells whether two statuses speak of the same plan and of the same probes in
// the same order.
func sameShape(a, b *v1alpha1.NodePodProbeStatus) bool {
	if a.ObservedGeneration != b.ObservedGeneration || a.Pods != b.Pods || a.Probes != b.Probes ||
		len(a.PodProbeStatuses) != len(b.PodProbeStatuses) {
		return false
	}
	for i := range a.PodProbeStatuses {
		p, q := &a.PodProbeStatuses[i], &b.PodProbeStatuses[i]
		if p.Name != q.Name || p.Namespace != q.Namespace || p.UID != q.UID || len(p.ProbeStates) != len(q.ProbeStates) {
			return false
		}
		for j := range p.ProbeStates {
			if p.ProbeStates[j].Name != q.ProbeStates[j].Name {
				return false
			}
		}
	}
	return true
}
