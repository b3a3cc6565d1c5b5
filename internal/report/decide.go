// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"time"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
)

// settled are the inputs with which a slice need not be written. While they stay the same, it
// need not be computed again before next, which is zero if there is no such time.
type settled struct {
	inputs []input
	next   time.Time
}

// input is a planned probe with its state. A pod begins with an input that has only its UID.
type input struct {
	uid, container, name, plan string

	state streak.State
	known bool
}

// inputs calls yield for the inputs of a slice, until it returns false.
func (d *decider) inputs(p *place, yield func(input) bool) {
	for _, i := range p.pods {
		pod := &d.plan.Pods[i]
		if !yield(input{uid: pod.UID}) {
			return
		}
		for j := range pod.Probes {
			probe := &pod.Probes[j]
			in := input{uid: pod.UID, container: probe.ContainerName, name: probe.Name, plan: probe.Plan}
			if key, err := probeid.KeyOf(pod, probe); err == nil {
				in.state, in.known = d.states[key]
			}
			if !yield(in) {
				return
			}
		}
	}
}

// isSettled reports whether a slice has the inputs of an earlier decision not to write it.
func (d *decider) isSettled(p *place, memo *settled) bool {
	if memo == nil || !memo.next.IsZero() && !memo.next.After(d.now) {
		return false
	}
	n, same := 0, true
	d.inputs(p, func(in input) bool {
		same = n < len(memo.inputs) && in == memo.inputs[n]
		n++
		return same
	})
	return same && n == len(memo.inputs)
}

// settle returns the inputs of a slice that need not be written before next.
func (d *decider) settle(p *place, next time.Time) *settled {
	memo := &settled{next: next}
	d.inputs(p, func(in input) bool {
		memo.inputs = append(memo.inputs, in)
		return true
	})
	return memo
}

// slice decides whether to write a slice with planned pods. If not, it returns its inputs.
func (d *decider) slice(p *place) (w Write, memo *settled) {
	must := p.moved || !p.stored || d.ledger.unsure[p.number]
	if memo := d.ledger.settled[p.number]; !must && d.isSettled(p, memo) {
		d.again(memo.next)
		return Write{}, memo
	}
	s := sliceDecider{now: d.now, write: must || d.isForeign(p), before: d.ledger.limits[p.number]}
	for _, i := range p.pods {
		s.members = append(s.members, d.gather(i))
	}
	pods := s.decide()
	d.again(s.next)
	if !s.write {
		return Write{}, d.settle(p, s.next)
	}
	d.limits = set(d.limits, p.number, s.limits)
	return Write{Number: p.number, Pods: pods, Create: !p.stored}, nil
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
	if !p.stored || !spare && !due.After(d.now) {
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
