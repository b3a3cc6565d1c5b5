// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle says which marks a pod should have. It is written from the documented rules, and shares no
// code with the manager, so that an error in one of them is a difference. It covers labels, annotations
// and conditions of policies; it does not know values from messages, stale states and keys that other
// clients own, and leaves out the labels and annotations of exclusive policies.
package oracle

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Mark is one place of a pod that a marker may write.
type Mark struct {
	// Kind is label, annotation or condition. Name is the key or the type.
	Kind, Name string
}

func (m Mark) String() string { return m.Kind + " " + m.Name }

// The kinds of marks.
const (
	Label      = "label"
	Annotation = "annotation"
	Condition  = "condition"
)

// Marks are values by place. The value of a condition is its status.
type Marks map[Mark]string

// Truth returns the state of a probe in a container of the pod, or an empty state if the probe cannot have a
// result yet.
type Truth func(pod *corev1.Pod, marker *v1alpha1.PodProbeMarker, probe string) v1alpha1.ProbeState

// Ended reports whether a pod keeps its last marks, because it is terminating or has ended.
func Ended(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Expect returns the marks of a pod that has not ended. markers are those of all namespaces.
func Expect(pod *corev1.Pod, markers []*v1alpha1.PodProbeMarker, truth Truth) (Marks, error) {
	want := Marks{}
	if !probed(pod) {
		return want, nil
	}
	ordered := slices.SortedFunc(slices.Values(markers), func(a, b *v1alpha1.PodProbeMarker) int { return cmp.Compare(a.Name, b.Name) })
	taken := map[Mark]bool{}
	for _, marker := range ordered {
		selects, err := selected(marker, pod)
		if err != nil {
			return nil, err
		}
		if !selects {
			continue
		}
		for i := range marker.Spec.Probes {
			probe := &marker.Spec.Probes[i]
			if !hasContainer(pod, probe.ContainerName) {
				continue
			}
			set := marksOf(probe, truth(pod, marker, probe.Name))
			for _, place := range declared(probe) {
				// The first probe that declares a key has it, in whichever state.
				if taken[place] {
					continue
				}
				taken[place] = true
				if value, sets := set[place]; sets {
					want[place] = value
				}
			}
		}
	}
	return want, nil
}

// Differences compares the marks of a pod with those that it should have. places are all that any marker may
// write, now or earlier: a place that should have no mark must be empty. Each difference names the place.
func Differences(pod *corev1.Pod, want Marks, places []Mark) map[Mark]string {
	found := map[Mark]string{}
	for _, place := range places {
		has, present := read(pod, place)
		value, wanted := want[place]
		switch {
		case wanted && !present:
			found[place] = fmt.Sprintf("%s is missing, want %q", place, value)
		case !wanted && present:
			found[place] = fmt.Sprintf("%s is %q, want none", place, has)
		case wanted && has != value:
			found[place] = fmt.Sprintf("%s is %q, want %q", place, has, value)
		}
	}
	return found
}

// Places returns the places that the markers may write, each once, in order.
func Places(markers ...*v1alpha1.PodProbeMarker) []Mark {
	var all []Mark
	for _, marker := range markers {
		for i := range marker.Spec.Probes {
			all = append(all, declared(&marker.Spec.Probes[i])...)
		}
	}
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(all)
}

// probed reports whether the pod is bound, active and initialized.
func probed(pod *corev1.Pod) bool {
	initialized := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue
	})
	return pod.Spec.NodeName != "" && !Ended(pod) && initialized
}

func selected(marker *v1alpha1.PodProbeMarker, pod *corev1.Pod) (bool, error) {
	if marker.Namespace != pod.Namespace || marker.DeletionTimestamp != nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil {
		return false, fmt.Errorf("selector of marker %s: %w", marker.Name, err)
	}
	return selector.Matches(labels.Set(pod.Labels)), nil
}

func hasContainer(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) ||
		slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
}

// declared returns the places of the probe in any state.
func declared(probe *v1alpha1.PodContainerProbe) []Mark {
	var all []Mark
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown} {
		for place := range marksOf(probe, state) {
			if !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	return all
}

// marksOf returns the marks that the probe alone sets in a state.
func marksOf(probe *v1alpha1.PodContainerProbe, state v1alpha1.ProbeState) Marks {
	set := Marks{}
	statuses := map[v1alpha1.ProbeState]corev1.ConditionStatus{
		v1alpha1.ProbeSucceeded: corev1.ConditionTrue, v1alpha1.ProbeFailed: corev1.ConditionFalse, v1alpha1.ProbeUnknown: corev1.ConditionUnknown,
	}
	if status, known := statuses[state]; known && probe.PodConditionType != "" {
		set[Mark{Condition, probe.PodConditionType}] = string(status)
	}
	for i := range probe.MarkerPolicy {
		policy := &probe.MarkerPolicy[i]
		if policy.State != state || policy.Exclusive != nil {
			continue
		}
		for key, value := range policy.Labels {
			set[Mark{Label, key}] = value
		}
		for key, value := range policy.Annotations {
			set[Mark{Annotation, key}] = value
		}
	}
	return set
}

func read(pod *corev1.Pod, place Mark) (value string, present bool) {
	switch place.Kind {
	case Label:
		value, present = pod.Labels[place.Name]
	case Annotation:
		value, present = pod.Annotations[place.Name]
	case Condition:
		for _, c := range pod.Status.Conditions {
			if string(c.Type) == place.Name {
				return string(c.Status), true
			}
		}
	}
	return value, present
}
