// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"time"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// place is a slice with the planned pods that have their place in it.
type place struct {
	number int
	// pods are indexes of the plan, in the order of the slice.
	pods []int
	// bytes are the budgets of the pods.
	bytes  int
	stored bool
	// moved reports whether the planned pods in the stored slice are others than pods.
	moved bool
}

// hasRoom reports whether another pod may take a place.
func (p *place) hasRoom(bytes int) bool {
	return p.number < MaxSlices && (len(p.pods) == 0 || len(p.pods) < MaxPods && p.bytes+bytes <= sliceBytes)
}

func (p *place) add(pod, bytes int) {
	p.pods, p.bytes = append(p.pods, pod), p.bytes+bytes
}

// locate returns the slices with the planned pods: every pod keeps its place, unless the slice
// is over-full. A pod without a place takes the first one that is free if it has something to
// report.
func (d *decider) locate() []*place {
	d.planned = make(map[string]int, len(d.plan.Pods))
	d.pods = make([]*podRecord, len(d.plan.Pods))
	for i := range d.plan.Pods {
		d.pods[i] = d.record.pod(d.plan.Pods[i].UID)
		if _, twice := d.planned[d.plan.Pods[i].UID]; !twice {
			d.planned[d.plan.Pods[i].UID] = i
		}
	}
	d.prune()
	places := d.storedPlaces()
	for _, pod := range d.overflow(places) {
		places = d.place(places, pod)
	}
	for i := range d.plan.Pods {
		if d.isFirst(i) && d.pods[i].number == nowhere && d.hasReport(i) {
			places = d.place(places, i)
		}
	}
	return places
}

// isFirst reports whether a pod of the plan is the first with its UID.
func (d *decider) isFirst(i int) bool { return d.planned[d.plan.Pods[i].UID] == i }

// prune removes the pods that are neither planned nor stored from the record, and the times of
// those that are planned again.
func (d *decider) prune() {
	for uid, pod := range d.record.pods {
		if _, planned := d.planned[uid]; planned || pod.number != nowhere && indexOf(d.record.stored[pod.number], uid) >= 0 {
			continue
		}
		d.ownPods()
		delete(d.record.pods, uid)
	}
	maps.DeleteFunc(d.record.leftPlan, func(uid string, _ time.Time) bool {
		_, planned := d.planned[uid]
		return planned || d.record.pods[uid] == nil
	})
}

// ownPods makes the pods of the record safe to modify.
func (d *decider) ownPods() {
	if !d.owned {
		d.owned, d.record.pods = true, maps.Clone(d.record.pods)
	}
}

func indexOf(pods []seamarkv1alpha1.PodReport, uid string) int {
	return slices.IndexFunc(pods, func(p seamarkv1alpha1.PodReport) bool { return p.UID == uid })
}

// storedPlaces returns the slices that are stored or may be, with the pods that have their place in
// them, by number.
func (d *decider) storedPlaces() []*place {
	byNumber, taken := map[int]*place{}, make([]bool, len(d.plan.Pods))
	at := func(number int) *place {
		if byNumber[number] == nil {
			byNumber[number] = &place{number: number}
		}
		return byNumber[number]
	}
	for number, pods := range d.record.stored {
		p := at(number)
		p.stored = true
		for j := range pods {
			i, planned := d.planned[pods[j].UID]
			switch {
			case !planned:
				p.moved = d.mustLeave(pods[j].UID) || p.moved
			case d.pods[i].number != number || taken[i]:
				p.moved = true
			default:
				taken[i] = true
				p.add(i, budgetOf(&d.plan.Pods[i]).size())
			}
		}
	}
	for number := range d.record.unsure {
		at(number)
	}
	for i := range d.plan.Pods {
		if number := d.pods[i].number; number != nowhere && !taken[i] && d.isFirst(i) {
			p := at(number)
			p.moved = true
			p.add(i, budgetOf(&d.plan.Pods[i]).size())
		}
	}
	places := make([]*place, 0, len(byNumber))
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		places = append(places, byNumber[number])
	}
	return places
}

// mustLeave reports whether a stored pod that is not planned must be left out now.
func (d *decider) mustLeave(uid string) bool {
	if !d.plan.Running[uid] {
		return false
	}
	since, known := d.record.leftPlan[uid]
	if !known {
		since = d.now
		d.record.leftPlan = set(d.record.leftPlan, uid, since)
	}
	due := since.Add(LeftDelay)
	if due.After(d.now) {
		d.recheck(due)
		return false
	}
	return true
}

// overflow removes the pods that exceed the size of their slice, the last ones first, and
// returns them.
func (d *decider) overflow(places []*place) []int {
	var exceeding []int
	for _, p := range places {
		pods := p.pods
		p.pods, p.bytes = nil, 0
		for _, i := range pods {
			bytes := budgetOf(&d.plan.Pods[i]).size()
			if !p.hasRoom(bytes) {
				exceeding, p.moved = append(exceeding, i), true
				continue
			}
			p.add(i, bytes)
		}
	}
	return exceeding
}

// place gives a pod the first free place: in the first slice that has room, or in a new one
// with the first free number. If there is none, the pod has no place.
func (d *decider) place(places []*place, i int) []*place {
	bytes := budgetOf(&d.plan.Pods[i]).size()
	at := slices.IndexFunc(places, func(p *place) bool { return p.hasRoom(bytes) })
	if at < 0 {
		at = len(places)
		for n, p := range places {
			if p.number != n {
				at = n
				break
			}
		}
		if at >= MaxSlices {
			return places
		}
		places = slices.Insert(places, at, &place{number: at})
	}
	p := places[at]
	p.moved = true
	p.add(i, bytes)
	d.ownPods()
	d.pods[i] = d.pods[i].moved(p.number)
	d.record.pods = set(d.record.pods, d.plan.Pods[i].UID, d.pods[i])
	return places
}

// hasReport reports whether a pod without a place has a state or an error to report.
func (d *decider) hasReport(i int) bool {
	m := d.gather(i)
	s := sliceDecider{now: d.now}
	found := slices.ContainsFunc(m.probes, candidate.hasState) || len(s.errors(&m)) > 0
	if !found {
		d.recheck(s.next)
	}
	return found
}
