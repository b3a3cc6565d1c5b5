// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oracle says which marks a pod should have. It is written from the documented rules, and shares no
// code with the manager, so that an error in one of them is a difference. Expect covers labels, annotations
// and conditions of policies; it does not know values from messages, stale states and keys that other
// clients own, and leaves out the labels and annotations of exclusive policies. test/model/marking adds
// these rules for its simulated cluster, whose state it knows.
package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Mark is one place of a pod that a marker may write.
type Mark struct {
	// Kind is label, annotation or condition. Name is the key or the type. Field is a field of a condition, empty for its
	// status.
	Kind, Name, Field string
}

func (m Mark) String() string { return strings.TrimSpace(m.Kind + " " + m.Name + " " + m.Field) }

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
	if !Probed(pod) {
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
			if !HasContainer(pod, probe.ContainerName) {
				continue
			}
			set, inclusive := marksIn(probe, truth(pod, marker, probe.Name), false), declared(probe, false)
			for place := range inclusive {
				// The first probe that declares a key has it, in whichever state.
				if value, sets := set[place]; sets && !taken[place] {
					want[place] = value
				}
			}
			maps.Copy(taken, inclusive)
		}
	}
	return want, nil
}

// Differences compares the marks of a pod with those that it should have. places are all that any marker may
// write, now or earlier: a place that should have no mark must be empty. Each difference names the place.
func Differences(pod *corev1.Pod, want Marks, places []Mark) map[Mark]string {
	found, actual := map[Mark]string{}, Actual(pod)
	for _, place := range places {
		has, present := actual[place]
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
			all = slices.AppendSeq(all, maps.Keys(declared(&marker.Spec.Probes[i], false)))
		}
	}
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(all)
}

// Probed reports whether the pod is bound, active and initialized.
func Probed(pod *corev1.Pod) bool {
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

// HasContainer reports whether probes can run in such a container of the pod.
func HasContainer(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) ||
		slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		})
}

// Declared returns the places that the probe declares in any state, those of values from messages included.
func Declared(probe *v1alpha1.PodContainerProbe) map[Mark]bool {
	all := declared(probe, true)
	for i := range probe.MarkerPolicy {
		for _, from := range probe.MarkerPolicy[i].LabelsFrom {
			all[Mark{Kind: Label, Name: from.Key}] = true
		}
		for _, from := range probe.MarkerPolicy[i].AnnotationsFrom {
			all[Mark{Kind: Annotation, Name: from.Key}] = true
		}
	}
	return all
}

func declared(probe *v1alpha1.PodContainerProbe, exclusive bool) map[Mark]bool {
	all := map[Mark]bool{}
	if probe.PodConditionType != "" {
		all[Mark{Kind: Condition, Name: probe.PodConditionType}] = true
	}
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; exclusive || policy.Exclusive == nil {
			for place := range fixed(policy) {
				all[place] = true
			}
		}
	}
	return all
}

// MarksIn returns the marks that the probe alone sets in a state, without values from messages.
func MarksIn(probe *v1alpha1.PodContainerProbe, state v1alpha1.ProbeState) Marks {
	return marksIn(probe, state, true)
}

func marksIn(probe *v1alpha1.PodContainerProbe, state v1alpha1.ProbeState, exclusive bool) Marks {
	set := Marks{}
	statuses := map[v1alpha1.ProbeState]corev1.ConditionStatus{
		v1alpha1.ProbeSucceeded: corev1.ConditionTrue, v1alpha1.ProbeFailed: corev1.ConditionFalse, v1alpha1.ProbeUnknown: corev1.ConditionUnknown,
	}
	if status, known := statuses[state]; known && probe.PodConditionType != "" {
		set[Mark{Kind: Condition, Name: probe.PodConditionType}] = string(status)
	}
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; policy.State == state && (exclusive || policy.Exclusive == nil) {
			maps.Copy(set, fixed(policy))
		}
	}
	return set
}

// fixed returns the marks of a policy, without values from messages.
func fixed(policy *v1alpha1.ProbeMarkerPolicy) Marks {
	set := Marks{}
	for key, value := range policy.Labels {
		set[Mark{Kind: Label, Name: key}] = value
	}
	for key, value := range policy.Annotations {
		set[Mark{Kind: Annotation, Name: key}] = value
	}
	return set
}

// Actual returns the labels and annotations of a pod, and the statuses and reasons of its conditions, whoever set them.
func Actual(pod *corev1.Pod) Marks {
	found := fixed(&v1alpha1.ProbeMarkerPolicy{Labels: pod.Labels, Annotations: pod.Annotations})
	for _, c := range pod.Status.Conditions {
		found[Mark{Kind: Condition, Name: string(c.Type)}] = string(c.Status)
		if c.Reason != "" {
			found[Mark{Kind: Condition, Name: string(c.Type), Field: "reason"}] = c.Reason
		}
	}
	return found
}
