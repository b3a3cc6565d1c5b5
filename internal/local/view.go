// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// view returns the current state of the pod.
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
			view.Probes = append(view.Probes, snapshot(p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]))
		}
	}
	seen := map[probeid.Key]bool{}
	for _, planned := range plan.Pod(p.object, markers, plan.KubernetesDefaults()).Probes {
		key := probeid.Key{
			ContainerKey: probeid.ContainerKey{PodUID: p.object.UID, Name: planned.Plan.ContainerName},
			ID:           planned.ID,
		}
		if known := p.marked[key]; known != nil {
			view.Probes = append(view.Probes, snapshot(known))
			seen[key] = true
		}
	}
	// These belong to a pod that is ending, or to a plan that is about to change.
	var others []ProbeChange
	for key, known := range p.marked {
		if !seen[key] {
			others = append(others, snapshot(known))
		}
	}
	slices.SortFunc(others, compareProbes)
	view.Probes = append(view.Probes, others...)
	return view
}

// compareProbes orders the probes of markers.
func compareProbes(a, b ProbeChange) int {
	return cmp.Or(strings.Compare(a.Marker, b.Marker), strings.Compare(a.Name, b.Name), strings.Compare(a.Container, b.Container))
}

// snapshot returns the state of a probe without what changed it.
func snapshot(known *ProbeChange) ProbeChange {
	p := *known
	p.Ran, p.Transition = false, false
	return p
}
