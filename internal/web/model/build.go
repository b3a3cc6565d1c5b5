// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// PodOf returns the pod with its rows. It returns false if the pod has no rows, which means that
// no marker selects it.
func PodOf(pod *corev1.Pod, rows []probestatus.Row) (Pod, bool) {
	if len(rows) == 0 {
		return Pod{}, false
	}
	p := Pod{
		Key: Key{Namespace: pod.Namespace, Name: pod.Name}.String(), Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.UTC(), Workload: WorkloadOf(pod), Phase: pod.Status.Phase,
		State: Succeeded, Guard: rows[0].Guard, Probes: make([]Probe, 0, len(rows)),
	}
	for i := range rows {
		row := &rows[i]
		notable := row.Problem != nil && row.Problem.Reason.Notable()
		p.Probes = append(p.Probes, Probe{
			Marker: row.Marker, Probe: row.Probe, Container: row.Container, State: row.State, Since: row.LastTransitionTime.UTC(),
			Message: row.Message, Source: row.Source, Problem: row.Problem, Notable: notable, Marks: row.Marks,
			Refused: row.Refused,
		})
		p.State = worse(p.State, stateOf(row.State))
		p.Problem = p.Problem || notable
	}
	return p, true
}

// PodsOf returns the pods that have rows. The rows are those of probestatus.List for the same pods.
func PodsOf(pods []*corev1.Pod, rows []probestatus.Row) []Pod {
	byPod := map[Key][]probestatus.Row{}
	for i := range rows {
		key := Key{Namespace: rows[i].Namespace, Name: rows[i].Pod}
		byPod[key] = append(byPod[key], rows[i])
	}
	found := make([]Pod, 0, len(byPod))
	for _, pod := range pods {
		if p, ok := PodOf(pod, byPod[Key{Namespace: pod.Namespace, Name: pod.Name}]); ok {
			found = append(found, p)
		}
	}
	return found
}

func stateOf(state v1alpha1.ProbeState) State {
	if state == "" {
		return None
	}
	return State(state)
}

// worse returns the state that comes first in the order of the constants.
func worse(a, b State) State {
	for _, state := range []State{Failed, Unknown, None} {
		if a == state || b == state {
			return state
		}
	}
	return a
}

// WorkloadOf returns the controller of the pod, or nil. The ReplicaSet of a Deployment is shown as
// the Deployment, whose name it extends by the hash in a label of the pod.
func WorkloadOf(pod *corev1.Pod) *Workload {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	// It is valid: the API server checks it.
	version, _ := schema.ParseGroupVersion(owner.APIVersion)
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, isOfDeployment := strings.CutSuffix(owner.Name, "-"+hash); owner.Kind == "ReplicaSet" && hash != "" && isOfDeployment && name != "" {
		return &Workload{Kind: "Deployment", Name: name, Group: version.Group}
	}
	return &Workload{Kind: owner.Kind, Name: owner.Name, Group: version.Group}
}

// MarkerOf returns a marker without counts. invalid is why it has no effect, or nil.
func MarkerOf(marker *v1alpha1.PodProbeMarker, invalid error) Marker {
	m := Marker{Namespace: marker.Namespace, Name: marker.Name, Probes: len(marker.Spec.Probes)}
	if invalid != nil {
		m.Invalid = invalid.Error()
	}
	return m
}

// Count sets the counts of the markers to those of the pods, and orders the markers by namespace and
// name. Probes of markers that are not in the list are not counted.
func Count(markers []Marker, pods func(yield func(*Pod) bool)) {
	slices.SortFunc(markers, func(a, b Marker) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	index := make(map[Key]*Marker, len(markers))
	for i := range markers {
		m := &markers[i]
		m.Pods, m.Succeeded, m.Failed, m.Unknown, m.None, m.Problems = 0, 0, 0, 0, 0, 0
		index[Key{Namespace: m.Namespace, Name: m.Name}] = m
	}
	for pod := range pods {
		last := ""
		for i := range pod.Probes {
			probe := &pod.Probes[i]
			m := index[Key{Namespace: pod.Namespace, Name: probe.Marker}]
			if m == nil {
				continue
			}
			// The probes are ordered by marker.
			if probe.Marker != last {
				last = probe.Marker
				m.Pods++
			}
			m.count(probe)
		}
	}
}

func (m *Marker) count(probe *Probe) {
	switch probe.State {
	case v1alpha1.ProbeSucceeded:
		m.Succeeded++
	case v1alpha1.ProbeFailed:
		m.Failed++
	case v1alpha1.ProbeUnknown:
		m.Unknown++
	default:
		m.None++
	}
	if probe.Notable {
		m.Problems++
	}
}

// TimelineOf returns the timeline of the pod with the rows until now. It starts at most since earlier, or
// when the pod was created. The events may be those of any probes. incomplete is why events may be
// missing, or nil.
func TimelineOf(pod *corev1.Pod, rows []probestatus.Row, events []history.Event, incomplete error, since time.Duration, now time.Time) Timeline {
	end := now.UTC().Truncate(time.Second)
	t := Timeline{Start: history.Start(pod, events, since, end), End: end, Complete: incomplete == nil, Lines: []history.Line{}}
	if incomplete != nil {
		t.Note = incomplete.Error()
	}
	for i := range rows {
		t.Lines = append(t.Lines, history.NewLine(&rows[i], events, t.Start, end))
	}
	return t
}
