// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// replanDelay is how long the matching of markers waits after a label changed, as the
// manager waits during a burst of changes. It also limits the rate at which a marker whose
// own label stops it from matching is added and removed.
const replanDelay = 100 * time.Millisecond

// marks reports the states of the markers' probes as the agent of a node does, and marks
// the pods as the manager does.
type marks struct {
	pods     *pods
	markers  []*plan.Marker
	changes  *changes
	schedule *schedule

	// plan is the plan that the worker runs.
	plan   report.Plan
	states report.States
	ledger report.Ledger
	// slices are the reports that an API server would store.
	slices map[int]*seamarkv1alpha1.ProbeReport
	// replanned reports whether the plan has changed since the pods were marked.
	replanned bool
	// announcer decides on the events for errors.
	announcer *report.Announcer
}

func newMarks(pods *pods, markers []*plan.Marker, changes *changes, schedule *schedule) *marks {
	return &marks{
		pods: pods, markers: markers, changes: changes, schedule: schedule,
		states: report.States{}, slices: map[int]*seamarkv1alpha1.ProbeReport{},
		announcer: report.NewAnnouncer(time.Time{}, report.Ledger{}),
	}
}

// set stores the state of a probe.
func (m *marks) set(now time.Time, key probeid.Key, state streak.State) {
	m.states[key] = state
	m.schedule.reportBy(now)
}

// forget removes the state of a probe.
func (m *marks) forget(key probeid.Key) { delete(m.states, key) }

// planApplied handles a plan that the worker now runs.
func (m *marks) planApplied(now time.Time, applied report.Plan) {
	m.plan, m.replanned = applied, true
	m.schedule.reportBy(now)
}

// report computes the report of the agent, writes the agent's events and marks the pods.
func (m *marks) report(now time.Time) {
	decision := report.Decide(now, m.plan, m.ledger, m.states, nil)
	m.ledger = decision.Ledger
	m.schedule.reportBy(decision.Next)
	var events []report.Event
	for _, w := range decision.Writes {
		events = append(events, m.ledger.Events(m.plan, w)...)
		m.write(now, w)
	}
	errs, next := m.announcer.Due(now, m.plan, m.ledger)
	m.schedule.reportBy(next)
	for _, e := range append(events, errs...) {
		if p := m.pods.byUID[types.UID(e.Pod.UID)]; p != nil {
			m.changes.event(now, p, e.Probe.ContainerName, e.Type(), e.Reason(), e.Text())
		}
	}
	if len(decision.Writes) == 0 && !m.replanned {
		return
	}
	m.replanned = false
	reported := mark.NodeReport{Slices: slices.Collect(maps.Values(m.slices))}
	for _, p := range m.pods.list {
		m.mark(now, p, reported)
	}
}

// write stores a slice as an API server does.
func (m *marks) write(now time.Time, w report.Write) {
	m.ledger = m.ledger.Wrote(now, w)
	if w.Delete {
		delete(m.slices, w.Number)
		return
	}
	slice := &seamarkv1alpha1.ProbeReport{Pods: w.Pods}
	slice.Name = report.NameOf("local", w.Number)
	m.slices[w.Number] = slice
}

// mark sets the marks of a pod according to the report. A pod that is ending keeps its
// marks.
func (m *marks) mark(now time.Time, p *pod, reported mark.NodeReport) {
	if plan.Ending(p.object) {
		return
	}
	options := view.Options{Defaults: plan.KubernetesDefaults()}
	v := view.New(p.object, m.markers, view.PlaceKubelet, reported, options)
	desired := v.Desired(p.owned)
	leftover := v.Leftover(p.owned, desired)
	if desired.Equal(p.owned) && len(leftover) == 0 {
		return
	}
	before := p.object.DeepCopy()
	mark.Replace(p.object, p.owned, desired)
	mark.Remove(p.object, leftover)
	p.owned, p.dirty = desired, true
	m.changes.keys(now, p, KindLabel, before.Labels, p.object.Labels)
	m.changes.keys(now, p, KindAnnotation, before.Annotations, p.object.Annotations)
	m.changes.conditions(now, p, before.Status.Conditions)
	if !maps.Equal(before.Labels, p.object.Labels) {
		m.schedule.planBy(now.Add(replanDelay))
	}
}
