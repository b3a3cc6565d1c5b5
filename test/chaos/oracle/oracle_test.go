// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
	"github.com/seamark-dev/seamark/test/expect"
)

const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed

func label(name string) oracle.Mark     { return oracle.Mark{Kind: oracle.Label, Name: name} }
func condition(name string) oracle.Mark { return oracle.Mark{Kind: oracle.Condition, Name: name} }

// declaring returns a marker of pods with app=game with a probe "p" that sets the label "role" to the name of the
// marker, and only when it succeeds.
func declaring(name string) *builders.MarkerBuilder {
	return builders.Marker("ns", name).Probe(builders.Probe("p").Label(succeeded, "role", name))
}

func TestExpect(t *testing.T) {
	t.Parallel()
	game := func() *builders.PodBuilder { return builders.Pod("ns", "pod").Label("app", "game") }
	both := builders.Marker("ns", "both").Probe(builders.Probe("p").Label(succeeded, "up", "yes").Label(failed, "up", "no").
		Annotation(failed, "why", "down").Condition("example.com/up")).Build()
	tests := map[string]struct {
		pod     *corev1.Pod
		markers []*v1alpha1.PodProbeMarker
		states  map[string]v1alpha1.ProbeState
		want    oracle.Marks
	}{
		"succeeded": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{both}, states: map[string]v1alpha1.ProbeState{"both": succeeded},
			want: oracle.Marks{label("up"): "yes", condition("example.com/up"): "True"},
		},
		"failed": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{both}, states: map[string]v1alpha1.ProbeState{"both": failed},
			want: oracle.Marks{label("up"): "no", {Kind: oracle.Annotation, Name: "why"}: "down", condition("example.com/up"): "False"},
		},
		"unknown has a condition only": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{both}, states: map[string]v1alpha1.ProbeState{"both": v1alpha1.ProbeUnknown},
			want: oracle.Marks{condition("example.com/up"): "Unknown"},
		},
		"no result yet": {pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{both}},
		"no policy of the state": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{declaring("a").Build()}, states: map[string]v1alpha1.ProbeState{"a": failed},
		},
		"the first marker has the key": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{declaring("b").Build(), declaring("a").Build()},
			states: map[string]v1alpha1.ProbeState{"a": succeeded, "b": succeeded}, want: oracle.Marks{label("role"): "a"},
		},
		"and keeps it when it does not set it": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{declaring("b").Build(), declaring("a").Build()},
			states: map[string]v1alpha1.ProbeState{"a": failed, "b": succeeded},
		},
		"a deleted marker does not have it": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{declaring("b").Build(), declaring("a").Deleting().Build()},
			states: map[string]v1alpha1.ProbeState{"a": succeeded, "b": succeeded}, want: oracle.Marks{label("role"): "b"},
		},
		"exclusive labels are left out": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "a").Probe(builders.Probe("p").Label(succeeded, "one", "yes").
				Label(failed, "up", "no").Exclusive(succeeded, v1alpha1.ExclusivePolicy{})).Build()}, states: map[string]v1alpha1.ProbeState{"a": succeeded},
		},
		"another label": {
			pod: builders.Pod("ns", "pod").Label("app", "web").Build(), markers: []*v1alpha1.PodProbeMarker{both},
			states: map[string]v1alpha1.ProbeState{"both": succeeded},
		},
		"another namespace": {
			pod: builders.Pod("other", "pod").Label("app", "game").Build(), markers: []*v1alpha1.PodProbeMarker{both},
			states: map[string]v1alpha1.ProbeState{"both": succeeded},
		},
		"no such container": {
			pod: game().Build(), markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "a").Probe(builders.Probe("p").Container("none").Condition("c")).Build()},
			states: map[string]v1alpha1.ProbeState{"a": succeeded},
		},
		"not bound to a node": {
			pod: game().Node("").Build(), markers: []*v1alpha1.PodProbeMarker{both}, states: map[string]v1alpha1.ProbeState{"both": succeeded},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := oracle.Expect(test.pod, test.markers, func(_ *corev1.Pod, marker *v1alpha1.PodProbeMarker, _ string) v1alpha1.ProbeState {
				return test.states[marker.Name]
			})
			expect.NoError(t, err)
			if test.want == nil {
				test.want = oracle.Marks{}
			}
			expect.Equal(t, "marks", test.want, got)
		})
	}
}

func TestExpectRefusesAnInvalidSelector(t *testing.T) {
	t.Parallel()
	marker := declaring("a").Build()
	marker.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	if _, err := oracle.Expect(builders.Pod("ns", "pod").Build(), []*v1alpha1.PodProbeMarker{marker}, nil); err == nil {
		t.Error("no error for the operator Like")
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	pod := builders.Pod("ns", "pod").Label("kept", "1").Label("wrong", "1").Label("left", "1").Label("foreign", "1").Build()
	want := oracle.Marks{label("kept"): "1", label("wrong"): "2", label("missing"): "3"}
	places := []oracle.Mark{label("kept"), label("wrong"), label("left"), label("missing"), condition("none")}
	got := slices.Sorted(maps.Values(oracle.Differences(pod, want, places)))
	wanted := []string{`label left is "1", want none`, `label missing is missing, want "3"`, `label wrong is "1", want "2"`}
	expect.Equal(t, "differences", wanted, got)
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	a := builders.Marker("ns", "a").Probe(builders.Probe("p").Label(succeeded, "x", "1").Label(failed, "x", "2").Annotation(failed, "n", "3").Condition("c")).Build()
	got := oracle.Places(a, declaring("b").Build())
	want := []oracle.Mark{{Kind: oracle.Annotation, Name: "n"}, condition("c"), label("role"), label("x")}
	expect.Equal(t, "places", want, got)
}
