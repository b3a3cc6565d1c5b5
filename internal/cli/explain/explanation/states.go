// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// groups are names by what they have in common.
type groups map[string][]string

func (g groups) add(what, name string) { g[what] = append(g[what], name) }

// size returns the number of names.
func (g groups) size() (n int) {
	for _, names := range g {
		n += len(names)
	}
	return n
}

// lines returns a line per group with the first names.
func (g groups) lines() (lines []string) {
	for _, what := range slices.Sorted(maps.Keys(g)) {
		lines = append(lines, fmt.Sprintf("%s: %s", what, text.List(g[what], text.MaxNames)))
	}
	return bounded(lines)
}

// states adds a step for each probe of the markers that are shown.
func (p *pods) states() {
	rows := map[identity.ID][]*probestatus.Row{}
	var order []identity.ID
	for i := range p.input.States.Rows {
		row := &p.input.States.Rows[i]
		id := identity.ID{Marker: row.Marker, Probe: row.Probe}
		if !p.shown(row.Marker) {
			continue
		}
		if rows[id] == nil {
			order = append(order, id)
		}
		rows[id] = append(rows[id], row)
	}
	for _, id := range order {
		p.probe(id, rows[id])
	}
}

// probe adds the step about a probe: how many pods are in which state, and why others have none.
func (p *pods) probe(id identity.ID, rows []*probestatus.Row) {
	counts, failing, problems, next := map[string]int{}, groups{}, groups{}, ""
	step := Step{Title: "Probe " + id.String(), Verdict: OK}
	hidden := 0
	for _, row := range rows {
		counts[row.Shown()]++
		if row.State == v1alpha1.ProbeFailed || row.State == v1alpha1.ProbeUnknown {
			failing.add(strings.TrimSuffix(string(row.State)+", "+text.Line(text.Truncate(row.Message, maxMessage)), ", "), row.Pod)
		}
		for _, refused := range row.Refused {
			failing.add(refused, row.Pod)
		}
		switch {
		case row.Problem == nil:
		case row.Problem.Reason == diagnosis.StateNotVisible:
			hidden++
		default:
			problems.add(row.Problem.Message, row.Pod)
			if row.Problem.Reason.Notable() && next == "" {
				step.Verdict, step.Text, next = Problem, row.Problem.Message, p.next(row)
			}
		}
	}
	var parts []string
	for _, state := range []string{string(v1alpha1.ProbeSucceeded), string(v1alpha1.ProbeFailed), string(v1alpha1.ProbeUnknown), "Pending"} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}
	if hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d not known, because only the reports have them, and they cannot be read", hidden))
	}
	summary := fmt.Sprintf("the states of %s: %s", text.Count(len(rows), "pod"), strings.Join(parts, ", "))
	switch {
	case step.Verdict == Problem:
		step.Text, step.Next = summary+"; "+step.Text, next
	case hidden == len(rows):
		step.Verdict, step.Text = Unknown, summary
	case counts["Pending"] > 0 && counts["Pending"] > problems.size():
		step.Verdict, step.Text, step.Next = Waiting, summary, p.watching(id.Marker)
	default:
		step.Text = summary
	}
	step.Evidence = slices.Concat(problems.lines(), failing.lines())
	p.add(step)
}

// maxMessage is the maximum length of the message of a state in a line, in bytes.
const maxMessage = 120

// next returns the command that shows why a probe has no state in a pod.
func (p *pods) next(row *probestatus.Row) string {
	switch row.Problem.Reason {
	case diagnosis.Reason(plan.ContainerNotFound), diagnosis.Reason(plan.PortNotFound), diagnosis.Reason(v1alpha1.ProbeCannotRun):
		return p.kubectl("get podprobemarker %s -o yaml", row.Marker)
	default:
		return p.explaining(row.Pod) + " -m " + row.Marker
	}
}
