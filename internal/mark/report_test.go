// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/test/builders"
)

func report(generation int64, pods ...v1alpha1.PodProbeStatus) *v1alpha1.NodePodProbe {
	return &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{
		ObservedGeneration: generation, PodProbeStatuses: pods,
	}}
}

func podStatus(name, uid string, states ...v1alpha1.ContainerProbeState) v1alpha1.PodProbeStatus {
	return v1alpha1.PodProbeStatus{Namespace: "ns", Name: name, UID: uid, ProbeStates: states}
}

func named(name string, s v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{Name: name, State: s}
}

func TestReportOf(t *testing.T) {
	idle := named("web#idle", v1alpha1.ProbeSucceeded)
	cases := map[string]struct {
		npp  *v1alpha1.NodePodProbe
		want mark.PodReport
	}{
		"no report": {npp: report(0)},
		"empty report": {
			npp: report(3), want: mark.PodReport{Reported: true},
		},
		"matched by UID, not by name": {
			npp:  report(0, podStatus("a", "old", named("web#idle", v1alpha1.ProbeFailed)), podStatus("a", "new", idle)),
			want: mark.PodReport{Reported: true, States: mark.States{{Marker: "web", Probe: "idle"}: idle}},
		},
		"invalid probe name": {
			npp:  report(0, podStatus("a", "new", named("web", v1alpha1.ProbeFailed), idle)),
			want: mark.PodReport{Reported: true, States: mark.States{probeid.ID{Marker: "web", Probe: "idle"}: idle}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mark.ReportOf(tc.npp, "new")); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChanged(t *testing.T) {
	idle, busy := named("web#idle", v1alpha1.ProbeSucceeded), named("web#idle", v1alpha1.ProbeFailed)
	pod := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	cases := map[string]struct {
		before, after *v1alpha1.NodePodProbe
		want          []types.NamespacedName
	}{
		"no change":   {before: report(1, podStatus("a", "1", idle)), after: report(2, podStatus("a", "1", idle))},
		"new pod":     {before: report(1), after: report(1, podStatus("a", "1", idle)), want: []types.NamespacedName{pod("a")}},
		"new state":   {before: report(1, podStatus("a", "1", idle), podStatus("b", "2", idle)), after: report(1, podStatus("a", "1", idle), podStatus("b", "2", busy)), want: []types.NamespacedName{pod("b")}},
		"removed pod": {before: report(1, podStatus("a", "1", idle)), after: report(1), want: []types.NamespacedName{pod("a")}},
		"recreated pod, listed once": {
			before: report(1, podStatus("a", "1", idle)), after: report(1, podStatus("a", "2", idle)),
			want: []types.NamespacedName{pod("a")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mark.Changed(tc.before, tc.after)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStatesOfEarlierMarker checks that the states of a deleted marker make no marks for a new
// marker with the same name.
func TestStatesOfEarlierMarker(t *testing.T) {
	cases := map[string]struct {
		planned, reported string
		want              bool
	}{
		"same marker":      {"1", "1", true},
		"recreated marker": {"2", "1", false},
		"older agent":      {"1", "", true},
		"older manager":    {"", "1", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			probes := planOf(t, builders.Marker("ns", "web").Probe(builders.Probe("p").Condition("game.io/idle")).Build())
			probes[0].Plan.Plan = tc.planned
			npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
				UID: "new", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "web#p", State: v1alpha1.ProbeSucceeded, Plan: tc.reported}},
			}}}}
			marks := mark.Desired(probes, mark.ReportOf(npp, "new"), nil)
			if got := marks.Has(mark.ConditionType("game.io/idle")); got != tc.want {
				t.Errorf("condition set: %t, want %t", got, tc.want)
			}
		})
	}
}
