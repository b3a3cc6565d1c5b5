// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report decides what an agent reports, and when. A report consists of slices of a few
// pods each (ProbeReport), so that the cost of a change does not depend on the number of pods on
// the node. From the plan in force, the record of earlier reports and the current states, Decide
// computes which slices to write now.
//
// Its rules for places:
//
//   - a pod gets a place when it has a state or an error, in the first slice that has room, and
//     keeps it while it is planned, even if it has no state any more;
//   - a pod moves only if the budgets of its slice's pods exceed MaxPods or MaxBytes, or if it
//     is stored twice;
//   - a pod that is not planned any more causes no write: it is left out when its slice is
//     written, and keeps its place if it is planned again before; only if its containers
//     still run after LeftDelay, so that it has not been deleted, the slice is written;
//   - a slice without planned pods is deleted after EmptyDelay;
//   - a slice that Decide has returned is returned again until Wrote, because the response of
//     a write may be lost.
//
// Its rules for states:
//
//   - a slice that is written contains exactly the planned pods that have their place in it,
//     and their planned probes in the order of the plan;
//   - a state of an earlier marker with the same name is neither kept nor restored;
//   - a change of a state or of the plan is reported immediately;
//   - a message that changes while the state stays the same takes a token from a bucket of
//     the probe, which holds three and is refilled at one per minute; without a token, the
//     newest message waits for one;
//   - a message that changes a value which marks the pod, to or from an allowed value, is
//     reported immediately, and takes a token too;
//   - with MessageUpdatesImmediate, a changed message does not wait for a token of the probe: the pod takes one from
//     a bucket of the node, which holds 110 and is refilled at ten per second; without a token, the
//     newest message waits for its turn, see inTurn;
//   - the time of the last probe is that of the run that led to the reported state or
//     message, and never causes a report;
//   - all states are always reported; the messages and errors of a pod have a budget, which
//     depends on the number of its planned probes only, and each message an equal share of it;
//   - the error of a probe is reported when it has lasted for ErrorDelay, and changes at most
//     once per ErrorInterval;
//   - an entry that is not due keeps its reported value when other entries are written.
package report

import (
	"maps"
	"slices"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

const (
	// MaxPods is the maximum number of planned pods in a slice.
	MaxPods = 8

	// MaxSlices is the maximum number of slices: they have the numbers from 0 to MaxSlices-1. The
	// API server rejects others. The largest plan has fewer pods than fit.
	MaxSlices = 400

	// MaxBytes is the budget of a slice in encoded bytes. States are always reported, so it
	// limits the messages and errors, and a pod whose states alone exceed it has a slice of its
	// own.
	MaxBytes = 48 << 10

	// LeftDelay is how long a pod whose containers run stays in its slice after it has left the
	// plan. It is longer than most pods take to terminate.
	LeftDelay = 2 * time.Minute

	// EmptyDelay is how long a slice without planned pods is kept, in case it is used
	// again.
	EmptyDelay = 10 * time.Minute
)

// Plan is the plan that is in force on a node.
type Plan struct {
	// Generation is the generation of the NodePodProbe.
	Generation int64
	// Pods are the pods in its spec.
	Pods []v1alpha1.PodProbe
	// Running are the UIDs of all pods on the node with a running container, as far as they are
	// known.
	Running map[string]bool
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
type States map[identity.Key]thresholds.State

// Slice is a stored slice: a ProbeReport.
type Slice struct {
	// Number is the number in its name (see seamarkv1alpha1.SliceNumber).
	Number int
	// Pods are its pods. They must not be modified.
	Pods []seamarkv1alpha1.PodReport
}

// Write is a slice to write: as a whole, or to delete.
type Write struct {
	// Number is the number in its name (see seamarkv1alpha1.SliceName).
	Number int
	// Pods are all pods of the slice, which may be none. They must not be modified.
	Pods []seamarkv1alpha1.PodReport
	// Create reports whether the slice is not stored as far as the record knows.
	Create bool
	// Delete reports whether to delete the slice. A slice that does not exist is deleted.
	Delete bool
}

// Decision is what to write, and when.
type Decision struct {
	// Writes are the slices to write now, by number. Each number occurs once.
	Writes []Write
	// Record replaces the record before the writes are sent, even if there are none. It
	// records the places of the pods, and that the slices in Writes may have been written
	// although the response is lost. Until Wrote, Decide returns such slices again.
	Record Record
	// Next is when to decide again if nothing changes until then and this decision is
	// carried out. It is zero if there is no need to.
	Next time.Time
}

// Decide decides which slices to write now. It omits planned probes with an invalid name. Changed
// contains the UIDs of the pods whose states may have changed since the decision that returned the
// record. It is nil if the plan or any state may have changed.
func Decide(now time.Time, plan Plan, record Record, states States, changed map[string]bool) Decision {
	record.unsure, record.empty, record.leftPlan = maps.Clone(record.unsure), maps.Clone(record.empty), maps.Clone(record.leftPlan)
	d := &decider{now: now, plan: plan, record: record, states: states, changed: changed}
	places := d.locate()
	spare, unchangedUntil := d.spare(places), make(map[int]time.Time, len(places))
	gathered := make([]*sliceDecider, len(places))
	for i, p := range places {
		gathered[i] = d.gatherSlice(p)
	}
	d.grant(gathered)
	var writes []Write
	for i, p := range places {
		if len(p.pods) == 0 {
			if w, write := d.vacate(p, spare > 0); write {
				writes = append(writes, w)
			}
			spare--
			continue
		}
		delete(d.record.empty, p.number)
		w, write, next := d.slice(p, gathered[i])
		d.recheck(next)
		if write {
			writes = append(writes, w)
		} else {
			unchangedUntil[p.number] = next
		}
	}
	d.record.unchangedUntil = unchangedUntil
	for _, w := range writes {
		d.record.unsure = set(d.record.unsure, w.Number, true)
	}
	return Decision{Writes: writes, Record: d.record, Next: d.next}
}

// decider decides on all slices of a node.
type decider struct {
	now    time.Time
	plan   Plan
	record Record
	states States
	// changed are the UIDs of the pods that may have changed, or nil if any may have.
	changed map[string]bool

	// planned are the indexes of the planned pods by UID, and pods their records.
	planned map[string]int
	pods    []*podRecord
	// owned reports whether record.pods is a copy.
	owned bool
	next  time.Time
}

// recheck schedules another decision.
func (d *decider) recheck(at time.Time) { d.next = earliest.Time(d.next, at) }

// isUnchanged reports whether an earlier decision not to write a slice still applies.
func (d *decider) isUnchanged(p *place) bool {
	until, found := d.record.unchangedUntil[p.number]
	return found && d.changed != nil && (until.IsZero() || until.After(d.now)) &&
		!slices.ContainsFunc(p.pods, func(i int) bool { return d.changed[d.plan.Pods[i].UID] })
}

// gatherSlice returns the planned pods of a slice with what is known about them. It is nil if the slice
// has none, or if an earlier decision not to write it still applies.
func (d *decider) gatherSlice(p *place) *sliceDecider {
	must := p.moved || !p.stored || d.record.unsure[p.number]
	if len(p.pods) == 0 || !must && d.isUnchanged(p) {
		return nil
	}
	s := &sliceDecider{now: d.now, write: must || d.isForeign(p), members: make([]member, 0, len(p.pods))}
	for _, i := range p.pods {
		s.members = append(s.members, d.gather(i))
	}
	return s
}

// grant gives the tokens of the node to the pods with changed messages that are reported at once, in
// turn. Pods that get none wait for the next token.
func (d *decider) grant(gathered []*sliceDecider) {
	var waiting []turn
	members := map[int]*member{}
	for _, s := range gathered {
		if s == nil {
			continue
		}
		for i := range s.members {
			if m := &s.members[i]; m.needsToken() {
				index := d.planned[m.pod.UID]
				members[index] = m
				waiting = append(waiting, turn{index: index, namespace: m.pod.Namespace, uid: m.pod.UID, last: m.record.granted})
			}
		}
	}
	tokens := d.record.tokens.tokens(d.now, messagesOfNode())
	if len(waiting) > tokens {
		d.setLast(waiting)
	}
	for _, t := range inTurn(waiting, tokens) {
		d.record.tokens = d.record.tokens.take(d.now, messagesOfNode())
		d.ownPods()
		d.pods[t.index] = d.pods[t.index].grant(d.now)
		d.record.pods[t.uid], members[t.index].record = d.pods[t.index], d.pods[t.index]
	}
	for _, s := range gathered {
		if s != nil {
			s.tokenDue = d.record.tokens.due(messagesOfNode())
		}
	}
}

// setLast sets when pods of the namespaces last took a token.
func (d *decider) setLast(waiting []turn) {
	last := map[string]time.Time{}
	for i := range d.plan.Pods {
		if namespace := d.plan.Pods[i].Namespace; d.pods[i].granted.After(last[namespace]) {
			last[namespace] = d.pods[i].granted
		}
	}
	for i := range waiting {
		waiting[i].lastOfNamespace = last[waiting[i].namespace]
	}
}

// slice decides whether to write a slice with planned pods, which gatherSlice returned. If not, it
// returns when to decide again, which is zero if there is no need to.
func (d *decider) slice(p *place, s *sliceDecider) (w Write, write bool, next time.Time) {
	if s == nil {
		return Write{}, false, d.record.unchangedUntil[p.number]
	}
	pods := s.decide()
	return Write{Number: p.number, Pods: pods, Create: !p.stored}, s.write, s.next
}

// isForeign reports whether the planned pods in a stored slice, which are those of the place,
// have other content than the agent last read or wrote.
func (d *decider) isForeign(p *place) bool {
	for i := range d.record.stored[p.number] {
		pod := &d.record.stored[p.number][i]
		if at, planned := d.planned[pod.UID]; planned && !equalReports(pod, &d.pods[at].report) {
			return true
		}
	}
	return false
}

// spare returns how many slices without planned pods are kept because planned pods that have
// no place yet may need them.
func (d *decider) spare(places []*place) int {
	waiting := 0
	for i := range d.plan.Pods {
		if d.isFirst(i) && d.pods[i].number == nowhere {
			waiting++
		}
	}
	for _, p := range places {
		if len(p.pods) > 0 {
			waiting -= max(0, MaxPods-len(p.pods))
		}
	}
	return max(0, waiting+MaxPods-1) / MaxPods
}

// vacate decides whether to write or delete a slice without planned pods, which is kept for
// EmptyDelay, and longer if it is a spare one.
func (d *decider) vacate(p *place, spare bool) (w Write, write bool) {
	since, known := d.record.empty[p.number]
	if !known {
		since = d.now
		d.record.empty = set(d.record.empty, p.number, since)
	}
	due := since.Add(EmptyDelay)
	if !p.stored || p.number >= MaxSlices || !spare && !due.After(d.now) {
		return Write{Number: p.number, Delete: true}, true
	}
	if !spare {
		d.recheck(due)
	}
	return Write{Number: p.number, Pods: []seamarkv1alpha1.PodReport{}}, p.moved || d.record.unsure[p.number]
}
