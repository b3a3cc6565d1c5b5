// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// view returns the pod as it stands.
func (p *pod) view(markers []*plan.Marker) PodView {
	view := PodView{
		Pod:               p.object.DeepCopy(),
		MarkedLabels:      p.owned.Names(mark.KindLabel),
		MarkedAnnotations: p.owned.Names(mark.KindAnnotation),
		MarkedConditions:  p.owned.Names(mark.KindCondition),
		Logs:              p.logs.all(),
	}
	for _, c := range p.machine.Containers() {
		for _, declared := range kubeletProbes(c.Spec) {
			view.Probes = append(view.Probes, shown(p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]))
		}
	}
	seen := map[probeid.Key]bool{}
	for _, planned := range plan.Pod(p.object, markers, plan.KubernetesDefaults()).Probes {
		key := probeid.Key{
			Container: probeid.Container{PodUID: p.object.UID, Name: planned.Plan.ContainerName},
			ID:        planned.ID,
		}
		if known := p.marked[key]; known != nil {
			view.Probes = append(view.Probes, shown(known))
			seen[key] = true
		}
	}
	// Those of an ended pod, or of a plan that is about to change.
	var others []Probe
	for key, known := range p.marked {
		if !seen[key] {
			others = append(others, shown(known))
		}
	}
	slices.SortFunc(others, compareProbes)
	view.Probes = append(view.Probes, others...)
	return view
}

// shown returns a probe as a snapshot has it.
func shown(known *Probe) Probe {
	p := *known
	p.Ran, p.Transition = false, false
	return p
}
