// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/report"
)

// replanDelay is how long the matching of markers waits after a label changed, as the
// manager waits during a burst of changes. It also limits the rate at which a marker whose
// own label stops it from matching is added and removed.
const replanDelay = 100 * time.Millisecond

// report reports the states of the markers' probes as the agent of a node does, with its events,
// and marks the pods as the manager does.
func (l *loop) report(now time.Time) {
	decision := report.Decide(now, l.applied, l.record, l.states, nil)
	l.record = decision.Record
	l.reporting.schedule(decision.Next)
	var events []report.Event
	for _, w := range decision.Writes {
		events = append(events, l.record.Events(l.applied, w)...)
		l.write(now, w)
	}
	errs, next := l.announcer.Due(now, l.applied, l.record)
	l.reporting.schedule(next)
	for _, e := range append(events, errs...) {
		if p := l.pod(types.UID(e.Pod.UID)); p != nil {
			l.addEvent(now, p, e.Probe.ContainerName, e.Type(), e.Reason(), e.Text())
		}
	}
	if len(decision.Writes) == 0 && !l.replanned {
		return
	}
	l.replanned = false
	reported := mark.NodeReport{Slices: slices.Collect(maps.Values(l.slices))}
	l.markAll(now, reported)
	if slices.ContainsFunc(l.markers, func(m *plan.Marker) bool { return len(m.Exclusives()) > 0 }) {
		// A pod that wins gets exclusive marks only after it has its ticket, and the other pods have lost the marks.
		l.markAll(now, reported)
	}
}

// markAll sets the marks of all pods once.
func (l *loop) markAll(now time.Time, reported mark.NodeReport) {
	for _, p := range l.pods {
		l.mark(now, p, reported)
	}
}

// isTicket reports whether the label is for the manager only.
func isTicket(key string) bool { return strings.HasPrefix(key, v1alpha1.ExclusiveTicketPrefix) }

// view returns the view of a pod, without contests.
func (l *loop) view(p *pod, reported mark.NodeReport) podview.Pod {
	return podview.New(p.object, l.markers, podview.KubeletNode, reported, podview.Options{Defaults: plan.KubernetesDefaults()})
}

// compete returns the view of a pod with its contests.
func (l *loop) compete(p *pod, reported mark.NodeReport) podview.Pod {
	v := l.view(p, reported)
	if !slices.ContainsFunc(l.markers, func(m *plan.Marker) bool { return len(m.Exclusives()) > 0 && m.Selects(p.object) }) {
		return v
	}
	all := make([]podview.Pod, 0, len(l.pods))
	for _, other := range l.pods {
		all = append(all, l.view(other, reported))
	}
	return v.Compete(l.markers, all)
}

// write stores a slice as an API server does.
func (l *loop) write(now time.Time, w report.Write) {
	l.record = l.record.Wrote(now, w)
	if w.Delete {
		delete(l.slices, w.Number)
		return
	}
	slice := &seamarkv1alpha1.ProbeReport{Pods: w.Pods}
	slice.Name = seamarkv1alpha1.SliceName("local", w.Number)
	l.slices[w.Number] = slice
}

// mark sets the marks of a pod according to the report. A pod that is ending keeps its
// marks, except for exclusive ones that another pod claims.
func (l *loop) mark(now time.Time, p *pod, reported mark.NodeReport) {
	v := l.compete(p, reported)
	if plan.Ending(p.object) && len(v.Contests) == 0 {
		return
	}
	desired := v.InGroup(p.owned, v.Desired(p.owned))
	leftover := v.Leftover(p.owned, desired)
	if desired.Equal(p.owned) && len(leftover) == 0 {
		return
	}
	before := p.object.DeepCopy()
	mark.Replace(p.object, p.owned, desired)
	mark.Remove(p.object, leftover)
	p.owned, p.dirty = desired, true
	l.addKeys(now, p, KindLabel, before.Labels, p.object.Labels)
	l.addKeys(now, p, KindAnnotation, before.Annotations, p.object.Annotations)
	l.addConditions(now, p, before.Status.Conditions)
	if !maps.Equal(before.Labels, p.object.Labels) {
		l.plan.schedule(now.Add(replanDelay))
	}
}
