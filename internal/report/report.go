// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report decides what an agent reports, and when. From the plan in force, the
// current states and the ledger of earlier reports, Decide computes the whole NodePodProbe
// status and whether to write it now.
//
// Its rules:
//
//   - the status contains exactly the pods and probes of the plan, in its order;
//   - a state of an earlier marker with the same name is neither kept nor restored;
//   - a change of a state or of the plan is reported immediately;
//   - a message that changes while the state stays the same takes a token from a bucket of
//     the probe, which holds three and is refilled at one per minute; without a token, the
//     newest message waits for one;
//   - the time of the last probe is that of the run that led to the reported state or
//     message, and never causes a report;
//   - all states are always reported; if the report would exceed MaxBytes, messages are
//     shortened, and the namespaces share what the states leave;
//   - the error of a probe is reported when it has lasted for ErrorDelay, and changes at most
//     once per ErrorInterval;
//   - an entry that is not due keeps its reported value when other entries are written.
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

// Plan is the plan that is in force on a node.
type Plan struct {
	// Generation is the generation of the NodePodProbe.
	Generation int64
	// Pods are the pods in its spec.
	Pods []v1alpha1.PodProbe
}

// Probes returns the number of probes in the plan.
func (p Plan) Probes() int {
	n := 0
	for i := range p.Pods {
		n += len(p.Pods[i].Probes)
	}
	return n
}

// States are the current states of the probes on the node. A probe whose state is empty has
// had no result. A probe without an entry is not known yet and keeps its reported state.
type States map[probeid.Key]streak.State

// Decision is what to write, and when.
type Decision struct {
	// Status is the whole status to write.
	Status v1alpha1.NodePodProbeStatus
	// Write reports whether to write the status now.
	Write bool
	// Next is when to decide again if nothing changes until then and this decision is
	// carried out. It is zero if there is no need to.
	Next time.Time
}

// Decide computes the status from the plan, the ledger and the states, and decides whether
// to write it now. It omits planned probes with an invalid name.
func Decide(now time.Time, plan Plan, ledger Ledger, states States) Decision {
	candidates := gather(plan, ledger, states)
	d := decider{now: now, ledger: ledger, states: states}
	errs, errBytes := d.errors(plan, max(freeBytes(plan, candidates, MaxBytes)/2, minErrorBudget))
	d.limits = limitsOf(plan, candidates, MaxBytes-errBytes)
	status := v1alpha1.NodePodProbeStatus{
		ObservedGeneration: plan.Generation,
		Pods:               int32(len(plan.Pods)),
		Probes:             int32(plan.Probes()),
	}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		if entries := d.pod(pod.Namespace, candidates[i]); len(entries)+len(errs[i]) > 0 {
			status.PodProbeStatuses = append(status.PodProbeStatuses, v1alpha1.PodProbeStatus{
				Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ProbeStates: entries, ProbeErrors: errs[i],
			})
		}
	}
	return Decision{Status: status, Write: d.write || !sameShape(&status, &ledger.status), Next: d.next}
}

// candidate is a planned probe with a state to report.
type candidate struct {
	planned *v1alpha1.ContainerProbe
	key     probeid.Key
	// state is the current state if known is set. Otherwise the reported state stays.
	state streak.State
	known bool
	// reported is the reported entry if wasReported is set.
	reported    v1alpha1.ContainerProbeState
	wasReported bool
}

// messageBytes returns the encoded bytes of the longer message that may be reported.
func (c *candidate) messageBytes() int {
	return max(encodedBytes(text.Truncate(c.state.Message, maxMessageBytes)),
		encodedBytes(text.Truncate(c.reported.Message, maxMessageBytes)))
}

// gather returns the candidates of each pod of the plan.
func gather(plan Plan, ledger Ledger, states States) [][]candidate {
	all := make([][]candidate, len(plan.Pods))
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			c := candidate{planned: &pod.Probes[j]}
			var err error
			if c.key, err = probeid.KeyOf(pod, c.planned); err != nil {
				continue
			}
			c.reported, c.wasReported = ledger.entries.of(entryOfKey(c.key), c.planned.Plan)
			c.state, c.known = states[c.key]
			if c.known && c.state.State != "" || !c.known && c.wasReported {
				all[i] = append(all[i], c)
			}
		}
	}
	return all
}

// decider computes the entries of one status.
type decider struct {
	now    time.Time
	ledger Ledger
	states States
	limits limits

	write bool
	next  time.Time
}

// pod returns the entries of one pod's probes.
func (d *decider) pod(namespace string, candidates []candidate) []v1alpha1.ContainerProbeState {
	var entries []v1alpha1.ContainerProbeState
	for i := range candidates {
		entry := d.probe(namespace, &candidates[i])
		entry.Message = d.limits.message(namespace, entry.Message)
		entries = append(entries, entry)
	}
	return entries
}

// probe returns the current or the reported entry of a probe. The identity in the entry is
// always the current one.
func (d *decider) probe(namespace string, c *candidate) v1alpha1.ContainerProbeState {
	if !c.known {
		return c.reported
	}
	fresh, reported := entryOf(c.planned, c.state), c.reported
	fresh.Message = d.limits.message(namespace, fresh.Message)
	reported.Plan, reported.ContainerID = fresh.Plan, fresh.ContainerID
	if !c.wasReported || fresh.State != reported.State || !fresh.LastTransitionTime.Equal(&reported.LastTransitionTime) {
		d.write = true
		return fresh
	}
	if fresh.Message == reported.Message {
		return reported
	}
	if due := d.ledger.MessageDue(c.key, c.state.LastTransition); due.After(d.now) {
		d.again(due)
		return reported
	}
	d.write = true
	return fresh
}

// again schedules another decision.
func (d *decider) again(at time.Time) {
	if d.next.IsZero() || at.Before(d.next) {
		d.next = at
	}
}

// Restore returns the reported states of the planned probes. An agent starts from them.
func Restore(plan Plan, status v1alpha1.NodePodProbeStatus) States {
	reported, errs := index(status), indexErrors(status)
	states := States{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range pod.Probes {
			id := entryID{podUID: types.UID(pod.UID), name: pod.Probes[j].Name}
			key, err := probeid.KeyOf(pod, &pod.Probes[j])
			if err != nil {
				continue
			}
			state := streak.State{Problem: streak.Problem{Reason: errs[id].Reason, Message: errs[id].Message}}
			if entry, _ := reported.of(id, pod.Probes[j].Plan); isState(entry.State) {
				state.State, state.Message, state.ContainerID = entry.State, entry.Message, entry.ContainerID
				state.LastProbe, state.LastTransition = entry.LastProbeTime.Time, entry.LastTransitionTime.Time
			}
			if state != (streak.State{}) {
				states[key] = state
			}
		}
	}
	return states
}

func isState(s v1alpha1.ProbeState) bool {
	return s == v1alpha1.ProbeSucceeded || s == v1alpha1.ProbeFailed || s == v1alpha1.ProbeUnknown
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

// sameShape reports whether two statuses have the same generation and the same probes in
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
