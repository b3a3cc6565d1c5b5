// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// survey collects the problems of some markers of a namespace, given each of its pods once.
type survey struct {
	markers []*plan.Marker
	found   map[string]*summary
}

func newSurvey(markers []*plan.Marker) survey {
	s := survey{markers: markers, found: make(map[string]*summary, len(markers))}
	for _, marker := range markers {
		s.found[marker.Name] = newSummary()
	}
	return s
}

// survey returns the problems of the markers by name, except of those that do not compile. It
// compiles the plan of each pod that one of them selects once, whatever the number of markers.
func (r *Reconciler) survey(ctx context.Context, all, checked []*v1alpha1.PodProbeMarker) (map[string]*summary, error) {
	if len(checked) == 0 {
		return nil, nil
	}
	s := newSurvey(r.Reader.Compiler.All(checked))
	markers := plan.Sorted(r.Reader.Compiler.All(all))
	pods, err := r.Reader.NamespacePods(ctx, checked[0].Namespace)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !s.selects(pod) {
			continue
		}
		planned, err := r.Reader.Plan(ctx, pod, markers)
		if err != nil {
			return nil, err
		}
		report, err := r.Reader.Report(ctx, pod.Spec.NodeName)
		if err != nil {
			return nil, err
		}
		s.add(pod, planned, report.Errors(pod.UID))
	}
	return s.found, nil
}

// selects counts the pod for the markers that probe it, and reports whether there are any.
func (s survey) selects(pod *corev1.Pod) bool {
	if !plan.Eligible(pod) {
		return false
	}
	selected := false
	for _, marker := range s.markers {
		if marker.Selects(pod) {
			s.found[marker.Name].matched++
			selected = true
		}
	}
	return selected
}

// add collects the problems in the plan of a pod, which is that of all markers of the namespace, and
// the errors that the agent of the pod's own node reports.
func (s survey) add(pod *corev1.Pod, planned plan.PodPlan, errs []v1alpha1.ContainerProbeError) {
	for _, p := range planned.Problems {
		s.addProblem(p.ID.Marker, problem{probe: p.ID.Probe, container: p.Container, port: p.Port, reason: p.Reason}, pod.Name, "")
	}
	for _, marker := range planned.Excess.Markers {
		s.addProblem(marker.Name, problem{reason: plan.TooManyMarkers}, pod.Name, planned.Excess.Counted)
	}
	s.addErrors(pod, planned, errs)
	_, conflicts := mark.Claim(planned.Probes)
	for _, c := range conflicts {
		if found := s.found[c.Loser.Marker]; found != nil {
			key := conflict{key: c.Key, winner: c.Winner, loser: c.Loser.Probe}
			found.conflicts[key] = found.conflicts[key].with(pod.Name)
		}
	}
}

func (s survey) addErrors(pod *corev1.Pod, planned plan.PodPlan, errs []v1alpha1.ContainerProbeError) {
	if len(errs) == 0 {
		return
	}
	ids := make(map[probeid.ID]bool, len(planned.Probes))
	for _, probe := range planned.Probes {
		ids[probe.ID] = true
	}
	for _, e := range errs {
		if id, err := probeid.Parse(e.Name); err == nil && ids[id] {
			s.addProblem(id.Marker, problem{probe: id.Probe, reason: plan.Reason(e.Reason)}, pod.Name, e.Message)
		}
	}
}

func (s survey) addProblem(marker string, p problem, pod, detail string) {
	if found := s.found[marker]; found != nil {
		found.problems[p] = found.problems[p].reporting(pod, detail)
	}
}
