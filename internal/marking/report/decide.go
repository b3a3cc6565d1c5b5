// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"time"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// isSettled reports whether an earlier decision not to write a slice still applies, and until when,
// which is zero if it applies until one of its pods changes.
func (d *decider) isSettled(p *place) (until time.Time, settled bool) {
	until, settled = d.ledger.settled[p.number]
	settled = settled && d.changed != nil && (until.IsZero() || until.After(d.now)) &&
		!slices.ContainsFunc(p.pods, func(i int) bool { return d.changed[d.plan.Pods[i].UID] })
	return until, settled
}

// slice decides whether to write a slice with planned pods. If not, it returns when to decide again,
// which is zero if there is no need to.
func (d *decider) slice(p *place) (w Write, write bool, next time.Time) {
	must := p.moved || !p.stored || d.ledger.unsure[p.number]
	if until, settled := d.isSettled(p); settled && !must {
		return Write{}, false, until
	}
	s := sliceDecider{now: d.now, write: must || d.isForeign(p)}
	for _, i := range p.pods {
		s.members = append(s.members, d.gather(i))
	}
	pods := s.decide()
	return Write{Number: p.number, Pods: pods, Create: !p.stored}, s.write, s.next
}

// isForeign reports whether the planned pods in a stored slice, which are those of the place,
// have other content than the agent last read or wrote.
func (d *decider) isForeign(p *place) bool {
	for i := range d.ledger.stored[p.number] {
		pod := &d.ledger.stored[p.number][i]
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
		if d.isFirst(i) && d.pods[i].place() == nowhere {
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
	since, known := d.ledger.empty[p.number]
	if !known {
		since = d.now
		d.ledger.empty = set(maps.Clone(d.ledger.empty), p.number, since)
	}
	due := since.Add(EmptyDelay)
	if !p.stored || p.number >= MaxSlices || !spare && !due.After(d.now) {
		return Write{Number: p.number, Delete: true}, true
	}
	if !spare {
		d.again(due)
	}
	return Write{Number: p.number, Pods: []seamarkv1alpha1.PodReport{}}, p.moved || d.ledger.unsure[p.number]
}

// occupy forgets since when a slice has had no planned pods.
func (d *decider) occupy(p *place) {
	if _, known := d.ledger.empty[p.number]; known {
		d.ledger.empty = maps.Clone(d.ledger.empty)
		delete(d.ledger.empty, p.number)
	}
}
