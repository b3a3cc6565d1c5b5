// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestatus

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// View returns the view of the pod, as the controllers have it. The markers are those of its
// namespace.
func (in Input) View(pod *corev1.Pod, markers []*plan.Marker) podview.Pod {
	return podview.New(pod, markers, podview.NodeKindOf(in.Nodes[pod.Spec.NodeName]), in.report(pod), in.Options)
}

// report returns what is reported about the pods of the pod's node.
func (in Input) report(pod *corev1.Pod) mark.NodeReport {
	return mark.NodeReport{Plan: in.Plans[pod.Spec.NodeName], Slices: in.Reports[pod.Spec.NodeName]}
}

type podRows struct {
	in    Input
	pod   podview.Pod
	marks mark.Marks
	// claims are the probes that the marks belong to.
	claims mark.Claims
	// refused are the keys without a valid value.
	refused []mark.ValueRefusal
	// findings are why probes have no state.
	findings *diagnosis.Pod
	// recheckAt is when the rows change although no object does. It is zero if they do not.
	recheckAt time.Time
}

// rowsOf returns the rows of a pod, and when they change although no object does.
func (in Input) rowsOf(pod *corev1.Pod, markers namespaceMarkers, parser *mark.Parser) ([]Row, time.Time) {
	r := podRows{in: in, pod: in.View(pod, markers.compiled).WithTickets(markers.compiled)}
	if !plan.Eligible(pod) {
		// Its probes are shown with the states that the marks have kept.
		r.pod.Plan = plan.Selected(pod, markers.compiled, in.Defaults)
		r.pod.Report = mark.PodReport{}
	}
	problems := r.pod.Plan.Unplanned(pod)
	if len(r.pod.Plan.Probes)+len(problems) == 0 {
		return nil, time.Time{}
	}
	// A pod whose managedFields cannot be parsed has no marks, as for the controllers.
	r.marks, _ = parser.Owned(pod)
	r.claims, _ = mark.Claim(r.pod.Plan.Probes)
	r.refused = mark.RefusedValues(r.pod.Plan.Probes, r.pod.Report, r.marks)
	r.findings = diagnosis.New(diagnosis.Input{
		Pod: r.pod, Options: in.Options, Node: in.report(pod), Markers: markers.all,
		PlanUnread: in.PlansUnread || in.NodesUnread, ReportsUnread: in.ReportsUnread, Statuses: in.Statuses, Now: in.Now,
	})
	rows := make([]Row, 0, len(r.pod.Plan.Probes)+len(problems))
	for _, probe := range r.pod.Plan.Probes {
		rows = append(rows, r.row(probe))
	}
	for i := range problems {
		problem := &problems[i]
		row := r.empty(problem.ID, problem.Container)
		row.Problem = ProblemOf(diagnosis.OfProblem(*problem))
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return strings.Compare(a.Marker, b.Marker) })
	if len(in.guards[pod.Namespace]) > 0 {
		guard := in.guard(pod, r.pod.Transitions(r.marks))
		for i := range rows {
			rows[i].Guard = guard
		}
	}
	return rows, r.recheckAt
}

// guard returns the guard of a pod, or nil.
func (in Input) guard(pod *corev1.Pod, transitions []guard.Transition) *Guard {
	name, since := in.guards[pod.Namespace].Since(pod, transitions)
	if name == "" {
		return nil
	}
	return &Guard{Name: name, Since: metav1.NewTime(since)}
}

func (r podRows) empty(id identity.ID, container string) Row {
	pod := r.pod.Object
	return Row{
		Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName,
		Marker: id.Marker, Probe: id.Probe, Container: container,
	}
}

func (r *podRows) row(probe plan.PlannedProbe) Row {
	row := r.empty(probe.ID, probe.Plan.ContainerName)
	state, source := r.state(probe)
	row.State, row.Source, row.Message = state.State, source, state.Message
	row.LastProbeTime, row.LastTransitionTime = state.LastProbeTime, state.LastTransitionTime
	for _, key := range r.marksOf(probe) {
		row.Marks = append(row.Marks, Mark{Kind: key.Kind, Name: key.Name, Value: r.marks[key].String()})
	}
	for _, refused := range r.refused {
		if refused.Probe == probe.ID {
			row.Refused = append(row.Refused, refused.String())
		}
	}
	found := r.findings.Probe(probe, row.State != "")
	if found != nil {
		r.recheckAt = earliest.Time(r.recheckAt, found.Until)
	}
	row.Problem = ProblemOf(found)
	return row
}

// marksOf returns the keys of the pod's marks that belong to the probe.
func (r podRows) marksOf(probe plan.PlannedProbe) []mark.Key {
	return slices.DeleteFunc(mark.Declared(probe.Source), func(key mark.Key) bool {
		return r.claims[key] != probe.ID || !r.marks.Has(key)
	})
}

// state returns the state of the probe. As long as nothing is reported about the pod, it keeps its
// marks, so they show the state.
func (r podRows) state(probe plan.PlannedProbe) (v1alpha1.ContainerProbeState, Source) {
	if r.isStale(probe) {
		state, _ := r.fromCondition(probe)
		return state, SourceCondition
	}
	if state, known := r.pod.Report.State(probe); known {
		if r.pod.Report.Provider {
			return state, SourceProvider
		}
		return state, SourceReport
	}
	if r.pod.Report.Reported {
		return v1alpha1.ContainerProbeState{}, ""
	}
	if state, known := r.fromCondition(probe); known {
		return state, SourceCondition
	}
	if state := r.fromLabels(probe); state != "" {
		return v1alpha1.ContainerProbeState{State: state}, SourceLabels
	}
	return v1alpha1.ContainerProbeState{}, ""
}

// isStale reports whether the condition of the probe says that its state is stale: only the manager
// knows since when.
func (r podRows) isStale(probe plan.PlannedProbe) bool {
	key := mark.ConditionType(probe.Source.PodConditionType)
	return probe.Source.StaleAfterSeconds != nil && r.claims[key] == probe.ID &&
		r.marks[key].Condition.Reason == v1alpha1.ReasonStale
}

// fromCondition returns the state that the condition of the probe shows. If the pod may be on a
// virtual node, its provider may have written the condition.
func (r podRows) fromCondition(probe plan.PlannedProbe) (v1alpha1.ContainerProbeState, bool) {
	key := mark.ConditionType(probe.Source.PodConditionType)
	mayBeProvided := r.in.NodesUnread || r.in.Provided(r.pod.NodeKind)
	if r.claims[key] != probe.ID || !r.marks.Has(key) && !mayBeProvided {
		return v1alpha1.ContainerProbeState{}, false
	}
	state, known := mark.Provided(r.pod.Object, []plan.PlannedProbe{probe}).States[probe.ID]
	return state, known
}

// fromLabels returns the state whose labels and annotations the pod has. It is empty if no state or
// several states would set them.
func (r podRows) fromLabels(probe plan.PlannedProbe) v1alpha1.ProbeState {
	keys := slices.DeleteFunc(r.marksOf(probe), func(key mark.Key) bool { return key.Kind == mark.KindCondition })
	if len(keys) == 0 {
		return ""
	}
	var found v1alpha1.ProbeState
	for i := range probe.Source.MarkerPolicy {
		state := probe.Source.MarkerPolicy[i].State
		wanted := mark.Desired([]plan.PlannedProbe{probe}, reportOf(probe, state), nil)
		if !slices.ContainsFunc(keys, func(key mark.Key) bool { return !wanted.Has(key) || wanted[key].Text != r.marks[key].Text }) {
			if found != "" {
				return ""
			}
			found = state
		}
	}
	return found
}

// reportOf returns a report that has only the state of the probe.
func reportOf(probe plan.PlannedProbe, state v1alpha1.ProbeState) mark.PodReport {
	return mark.PodReport{Reported: true, States: mark.States{probe.ID: {Name: probe.ID.String(), State: state}}}
}

// Shown returns the state as commands show it: Pending if there is no result yet, and "-" if only the
// reports have the state and they cannot be read.
func (r *Row) Shown() string {
	switch {
	case r.State != "":
		return string(r.State)
	case r.Problem != nil && r.Problem.Reason == diagnosis.StateNotVisible:
		return "-"
	default:
		return "Pending"
	}
}

// Problem is why a probe has no state, or why its state may be outdated.
type Problem struct {
	// Reason is the type of the problem.
	Reason diagnosis.Reason `json:"reason"`
	// Message describes the problem, in lower case and without a period at the end.
	Message string `json:"message"`
}

// ProblemOf returns a finding as a row shows it, or nil if there is none or if nothing is known to be
// wrong.
func ProblemOf(found *diagnosis.Finding) *Problem {
	if found == nil || found.Waiting {
		return nil
	}
	return &Problem{Reason: found.Reason, Message: found.String()}
}
