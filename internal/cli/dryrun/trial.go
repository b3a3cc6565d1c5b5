// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dryrun computes what a state of a marker's probe would do to a pod: the marks, how they
// differ from what the pod has now, and the event. It is pure, and uses the code of the manager and
// the agent, so that a trial of a marker shows what the marker does.
package dryrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// Pod is a pod with the probes of one marker that may run in it.
type Pod struct {
	// Object is the pod.
	Object *corev1.Pod
	// Probes are the probes of the marker, in its order.
	Probes []plan.PlannedProbe
	// Problems are the probes of the marker that cannot run in the pod.
	Problems []plan.Problem

	planned []plan.PlannedProbe
	claims  mark.Claims
	owned   mark.Marks
}

// New returns the pod with the probes of the marker, given the other markers of the namespace, of
// which one with the same name is ignored. The error says why the marker would not probe the pod.
func New(pod *corev1.Pod, marker *plan.Marker, others []*plan.Marker) (Pod, error) {
	if err := Selects(marker, pod); err != nil {
		return Pod{}, err
	}
	owned, err := mark.Owned(pod)
	if err != nil {
		return Pod{}, fmt.Errorf("read marks: %w", err)
	}
	markers := slices.DeleteFunc(slices.Clone(others), func(other *plan.Marker) bool { return other.Key() == marker.Key() })
	all := plan.Pod(pod, append(markers, marker), plan.KubernetesDefaults())
	p := Pod{Object: pod, planned: all.Probes, owned: owned}
	p.claims, _ = mark.Claim(all.Probes)
	for _, planned := range all.Probes {
		if planned.ID.Marker == marker.Name {
			p.Probes = append(p.Probes, planned)
		}
	}
	for _, problem := range all.Unplanned(pod) {
		if problem.ID.Marker == marker.Name {
			p.Problems = append(p.Problems, problem)
		}
	}
	return p, nil
}

// Selects returns an error that says why the marker does not probe the pod, or nil if it does.
func Selects(marker *plan.Marker, pod *corev1.Pod) error {
	if marker.Deleting {
		return fmt.Errorf("PodProbeMarker %s is being deleted", marker.Name)
	}
	if unmet := marker.Unmet(pod.Labels); len(unmet) > 0 {
		var texts []string
		for _, requirement := range unmet {
			value, found := pod.Labels[requirement.Key()]
			if !found {
				texts = append(texts, fmt.Sprintf("%q (the pod has no label %s)", requirement.String(), requirement.Key()))
				continue
			}
			texts = append(texts, fmt.Sprintf("%q (the label is %q)", requirement.String(), value))
		}
		return fmt.Errorf("the selector of PodProbeMarker %s requires %s", marker.Name, strings.Join(texts, " and "))
	}
	if waiting := diagnosis.OfPod(pod); waiting != nil {
		return fmt.Errorf("%s: it is not probed", waiting)
	}
	return nil
}

// Change is the difference between a mark that the pod has and one that it would have.
type Change struct {
	// Kind and Name identify the mark.
	Kind mark.Kind `json:"kind"`
	Name string    `json:"name"`
	// Now is the value that the pod has, or nil if it has none.
	Now *string `json:"now,omitempty"`
	// New is the value that it would have, or nil if the mark would be removed.
	New *string `json:"new,omitempty"`
}

// String returns the change in one word: +name=value, -name=value or name=value->value.
func (c Change) String() string {
	switch {
	case c.Now == nil && c.New != nil:
		return fmt.Sprintf("+%s=%s", c.Name, *c.New)
	case c.New == nil && c.Now != nil:
		return fmt.Sprintf("-%s=%s", c.Name, *c.Now)
	case c.New != nil:
		return fmt.Sprintf("%s=%s->%s", c.Name, *c.Now, *c.New)
	default:
		return c.Name
	}
}

// Event is the event that an agent writes when a state changes.
type Event struct {
	// Type is Normal or Warning.
	Type string `json:"type"`
	// Reason is the reason of the event.
	Reason string `json:"reason"`
	// Message is the text of the event.
	Message string `json:"message"`
}

// Effect is what a state of a probe would do.
type Effect struct {
	// Marks are the marks of the probe, ordered by kind and name.
	Marks []probestatus.Mark `json:"marks,omitempty"`
	// Changes are the differences to what the pod has, ordered by kind and name. The message and the
	// times of a condition do not count.
	Changes []Change `json:"changes,omitempty"`
	// Lost are the marks that the probe declares but that belong to another probe.
	Lost []Lost `json:"lost,omitempty"`
	// Event is written if the state differs from the one before. It is nil for a state that has no
	// event.
	Event *Event `json:"event,omitempty"`
}

// Lost is a mark that a probe declares but that belongs to another probe of the pod.
type Lost struct {
	// Kind and Name identify the mark.
	Kind mark.Kind `json:"kind"`
	Name string    `json:"name"`
	// Owner is the marker and the probe to which it belongs, as MARKER#PROBE.
	Owner string `json:"owner"`
}

// Effect returns what the state of a probe of the marker would do. Without a state, there are no
// marks and no changes.
func (p Pod) Effect(planned plan.PlannedProbe, state thresholds.State) Effect {
	var effect Effect
	own := make(map[mark.Key]bool)
	for _, key := range mark.Declared(planned.Source) {
		if owner := p.claims[key]; owner != planned.ID {
			effect.Lost = append(effect.Lost, Lost{Kind: key.Kind, Name: key.Name, Owner: owner.String()})
			continue
		}
		own[key] = true
	}
	if state.State == "" {
		return effect
	}
	result := mark.PodReport{Reported: true, States: mark.States{planned.ID: wire(planned, state)}}
	desired := mark.Desired(p.planned, result, p.owned)
	for _, key := range desired.Keys() {
		effect.Marks = append(effect.Marks, probestatus.Mark{Kind: key.Kind, Name: key.Name, Value: desired[key].String()})
	}
	effect.Changes = p.changes(own, desired, mark.Leftover(p.Object, p.planned, result, p.owned, desired))
	effect.Event = eventOf(planned, state)
	return effect
}

// changes returns the differences of the own marks.
func (p Pod) changes(own map[mark.Key]bool, desired mark.Marks, leftover []mark.Key) []Change {
	var changes []Change
	for _, key := range desired.Keys() {
		then, now := desired[key].String(), p.current(key)
		if now == nil || *now != then {
			changes = append(changes, Change{Kind: key.Kind, Name: key.Name, Now: now, New: &then})
		}
	}
	for key := range own {
		if !desired.Has(key) && (p.owned.Has(key) || slices.Contains(leftover, key)) {
			changes = append(changes, Change{Kind: key.Kind, Name: key.Name, Now: p.current(key)})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return strings.Compare(string(a.Kind)+" "+a.Name, string(b.Kind)+" "+b.Name)
	})
	return changes
}

// current returns the value that the pod has, or nil.
func (p Pod) current(key mark.Key) *string {
	value, found := key.In(p.Object)
	if !found {
		return nil
	}
	return &value
}

func wire(planned plan.PlannedProbe, state thresholds.State) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		Name: planned.Plan.Name, Plan: planned.Plan.Plan, State: state.State, Message: state.Message,
		LastProbeTime: metav1.NewTime(state.LastProbe.Truncate(time.Second)), LastTransitionTime: metav1.NewTime(state.LastTransition.Truncate(time.Second)),
	}
}

func eventOf(planned plan.PlannedProbe, state thresholds.State) *Event {
	if state.State != v1alpha1.ProbeSucceeded && state.State != v1alpha1.ProbeFailed {
		return nil
	}
	event := report.Event{Probe: &planned.Plan, State: state.State, Message: state.Message}
	return &Event{Type: event.Type(), Reason: event.Reason(), Message: event.Text()}
}
