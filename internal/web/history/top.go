// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// Group are the probes of one marker on one node.
type Group struct {
	// Namespace and Marker identify the marker. Node is empty for pods that are not bound.
	Namespace string `json:"namespace"`
	Marker    string `json:"marker"`
	Node      string `json:"node,omitempty"`
	// Probes is the number of probes of pods in the group.
	Probes int `json:"probes"`
	// NotRun is the number of probes that have a problem or no state. Slow is the number of failed
	// probes that timed out, and of those that wait for a slot or for the end of an earlier run.
	// Failed is the number of probes whose state is Failed, for another reason.
	NotRun int `json:"notRun"`
	Slow   int `json:"slow"`
	Failed int `json:"failed"`
	// PerHour is the number of changes of states per hour. It is an estimate if an event stands for
	// changes before and after the start of the window.
	PerHour float64 `json:"changesPerHour"`
	// Worst is the pod and probe with the most changes or the worst problem, and Message is what it
	// reports.
	Worst   string `json:"worst,omitempty"`
	Message string `json:"message,omitempty"`
	// Guard is the guard of this pod, and for how long it has protected the pod. It is empty if there is none.
	Guard string `json:"guard,omitempty"`
	// Row is that of Worst, or nil.
	Row *probestatus.Row `json:"-"`

	worst faults
}

// faults orders probes and groups: the more, the worse.
type faults struct {
	notRun, slow, failed int
	perHour              float64
}

// compare orders from worst to best.
func (f faults) compare(other faults) int {
	return cmp.Or(
		cmp.Compare(other.notRun, f.notRun), cmp.Compare(other.slow, f.slow),
		cmp.Compare(other.perHour, f.perHour), cmp.Compare(other.failed, f.failed),
	)
}

// faultsOf returns the faults of the row.
func faultsOf(row *probestatus.Row, perHour float64) faults {
	f := faults{perHour: perHour}
	slow := []diagnosis.Reason{
		diagnosis.Reason(v1alpha1.ProbeWaitingForSlot), diagnosis.Reason(v1alpha1.ProbeNotEnded), diagnosis.Reason(v1alpha1.ProbeRateLimited),
	}
	switch {
	case row.Problem != nil && row.Problem.Reason == diagnosis.PodEnding:
		// The probes of a pod that has ended do not run by design.
	case row.Problem != nil && slices.Contains(slow, row.Problem.Reason), row.State == v1alpha1.ProbeFailed && diagnosis.TimedOut(row.Message):
		f.slow = 1
	case row.Problem != nil || row.State == "":
		f.notRun = 1
	case row.State == v1alpha1.ProbeFailed:
		f.failed = 1
	}
	return f
}

// Top returns the groups of the rows, the worst ones first: those with most probes that did not run,
// then by probes that are slow, by changes per hour and by failed probes. Groups without any of
// these are omitted. The events count if they are within the window, which must be positive, before
// now.
func Top(rows []probestatus.Row, events []Event, now time.Time, window time.Duration) []Group {
	changes := map[Probe]float64{}
	since := now.Add(-window)
	for _, e := range events {
		if e.State != "" {
			changes[e.Probe] += e.within(since) / window.Hours()
		}
	}
	type key struct{ namespace, marker, node string }
	groups := map[key]*Group{}
	for i := range rows {
		row := &rows[i]
		k := key{row.Namespace, row.Marker, row.Node}
		if groups[k] == nil {
			groups[k] = &Group{Namespace: row.Namespace, Marker: row.Marker, Node: row.Node}
		}
		groups[k].add(row, faultsOf(row, changes[ProbeOf(row)]))
	}
	var found []Group
	for _, g := range groups {
		if g.total() != (faults{}) {
			g.Guard = g.Row.Guard.Text(now)
			found = append(found, *g)
		}
	}
	slices.SortFunc(found, func(a, b Group) int {
		return cmp.Or(a.total().compare(b.total()), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Marker, b.Marker), strings.Compare(a.Node, b.Node))
	})
	return found
}

func (g *Group) total() faults { return faults{g.NotRun, g.Slow, g.Failed, g.PerHour} }

func (g *Group) add(row *probestatus.Row, f faults) {
	g.Probes++
	g.NotRun += f.notRun
	g.Slow += f.slow
	g.Failed += f.failed
	g.PerHour += f.perHour
	if f == (faults{}) || g.Worst != "" && f.compare(g.worst) >= 0 {
		return
	}
	g.worst, g.Worst, g.Message, g.Row = f, row.Pod+" "+row.Probe, row.Message, row
	if row.Problem != nil {
		g.Message = string(row.Problem.Reason) + ": " + row.Problem.Message
	}
}
