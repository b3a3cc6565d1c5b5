// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pagesource

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// rowsOf returns the rows of a pod, in the order of probestatus.List. The states have no source: they
// are those of the run itself.
func rowsOf(view local.PodView, markers []*plan.Marker) []probestatus.Row {
	waiting := probestatus.ProblemOf(diagnosis.OfPod(view.Pod))
	planned := plan.Selected(view.Pod, markers, plan.KubernetesDefaults())
	claims, _ := mark.Claim(planned.Probes)
	problems := planned.Unplanned(view.Pod)
	rows := make([]probestatus.Row, 0, len(planned.Probes)+len(problems))
	for _, probe := range planned.Probes {
		row := emptyRow(view.Pod, probe.ID, probe.Plan.ContainerName)
		row.Marks, row.Problem = marksOf(view, probe, claims), waiting
		if found := slices.IndexFunc(view.Probes, func(p local.ProbeChange) bool {
			return p.Type == local.ProbeMarker && p.Marker == probe.ID.Marker && p.Name == probe.ID.Probe && p.Container == row.Container
		}); found >= 0 {
			addState(&row, &view.Probes[found])
		}
		rows = append(rows, row)
	}
	for i := range problems {
		row := emptyRow(view.Pod, problems[i].ID, problems[i].Container)
		row.Problem = probestatus.ProblemOf(diagnosis.OfProblem(problems[i]))
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b probestatus.Row) int { return strings.Compare(a.Marker, b.Marker) })
	return rows
}

func emptyRow(pod *corev1.Pod, id identity.ID, container string) probestatus.Row {
	return probestatus.Row{
		Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Node: pod.Spec.NodeName,
		Marker: id.Marker, Probe: id.Probe, Container: container,
	}
}

func addState(row *probestatus.Row, probe *local.ProbeChange) {
	row.State, row.Message = probe.State, probe.Message
	row.LastProbeTime, row.LastTransitionTime = metav1.Time{Time: probe.LastProbe}, metav1.Time{Time: probe.LastTransition}
	if probe.Error != "" && row.Problem == nil {
		row.Problem = probestatus.ProblemOf(diagnosis.OfError(v1alpha1.ContainerProbeError{Message: probe.Error}))
	}
}

// marksOf returns the marks on the pod that belong to the probe, ordered by kind and name.
func marksOf(view local.PodView, probe plan.PlannedProbe, claims mark.Claims) []probestatus.Mark {
	var marks []probestatus.Mark
	for _, key := range mark.Declared(probe.Source) {
		if claims[key] != probe.ID {
			continue
		}
		if value, set := valueOf(view, key); set {
			marks = append(marks, probestatus.Mark{Kind: key.Kind, Name: key.Name, Value: value})
		}
	}
	return marks
}

// valueOf returns the value of a mark, and whether a marker has set it.
func valueOf(view local.PodView, key mark.Key) (string, bool) {
	switch key.Kind {
	case mark.KindLabel:
		return view.Pod.Labels[key.Name], slices.Contains(view.MarkedLabels, key.Name)
	case mark.KindAnnotation:
		return view.Pod.Annotations[key.Name], slices.Contains(view.MarkedAnnotations, key.Name)
	case mark.KindCondition:
		for _, condition := range view.Pod.Status.Conditions {
			if string(condition.Type) == key.Name {
				return string(condition.Status), slices.Contains(view.MarkedConditions, key.Name)
			}
		}
	}
	return "", false
}
