// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/test/builders"
)

// shown formats each entry as "manager operation subresource fields".
func shown(managed []metav1.ManagedFieldsEntry) []string {
	var lines []string
	for _, entry := range managed {
		lines = append(lines, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource+" "+entry.FieldsV1.GetRawString())
	}
	return lines
}

func TestEntries(t *testing.T) {
	const broken = `{"f:metadata":[]}`
	managed := builders.Pod("ns", "a").
		Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{".":{},"f:app":{}},"f:generateName":{}},"f:spec":{"f:nodeName":{}}}`).
		Updated("kruise-manager", "status", ownedSet).
		Updated("kruise-manager", "", `{"f:spec":{"f:nodeName":{}}}`).
		Updated("kruise-manager", "status", broken).
		ManagedFields("kruise-manager", "status", ownedSet).
		Updated("kubelet", "status", ownedSet).
		ManagedFields("seamark", "status", ownedSet).
		Build().ManagedFields
	want := []string{
		"seamark Apply status " + ownedSet,
		`kruise-manager Update  {"f:metadata":{"f:labels":{"f:app":{}}}}`,
		`kruise-manager Update status {"f:metadata":{"f:annotations":{"f:controller.kubernetes.io/pod-deletion-cost":{}},` +
			`"f:labels":{"f:gameserver-idle":{},"f:gone":{}}},` +
			`"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{}}}}`,
		"kruise-manager Update status " + broken,
	}
	kept := mark.Entries(managed)
	if diff := cmp.Diff(want, shown(kept)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shown(kept), shown(mark.Entries(kept))); diff != "" {
		t.Errorf("Entries is not idempotent (-once +twice):\n%s", diff)
	}
}

func TestInherited(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a") }
	cases := map[string]struct {
		pod   *builders.PodBuilder
		want  []mark.Key
		fails bool
	}{
		"other managers":          {pod: pod().Updated("kubelet", "status", ownedSet).ManagedFields("seamark", "status", ownedSet)},
		"apply by kruise-manager": {pod: pod().ManagedFields("kruise-manager", "status", ownedSet)},
		"all kinds, two entries": {
			pod: pod().Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`).Updated("kruise-manager", "status", ownedSet),
			want: []mark.Key{
				mark.Annotation("controller.kubernetes.io/pod-deletion-cost"),
				mark.ConditionType("game.io/idle"),
				mark.Label("app"), mark.Label("gameserver-idle"), mark.Label("gone"),
			},
		},
		"invalid fields":  {pod: pod().Updated("kruise-manager", "status", `{"f:metadata":[]}`), fails: true},
		"invalid element": {pod: pod().Updated("kruise-manager", "status", `{"f:status":{"f:conditions":{"k:{":{}}}}`), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mark.Inherited(tc.pod.Build().ManagedFields)
			if fails := err != nil; fails != tc.fails {
				t.Fatalf("error %v, want an error: %t", err, tc.fails)
			}
			keys := slices.SortedFunc(maps.Keys(got), func(a, b mark.Key) int { return strings.Compare(a.String(), b.String()) })
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Errorf("inherited (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftover(t *testing.T) {
	idle := plan.PlannedProbe{ID: probeid.ID{Marker: "m", Probe: "idle"}, Source: builders.Probe("idle").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "idle", "true").Label(v1alpha1.ProbeFailed, "busy", "true").Build()}
	inherited := sets.New(mark.Label("idle"), mark.Label("busy"), mark.Label("app"))
	known := mark.PodReport{Reported: true, States: mark.States{idle.ID: {State: v1alpha1.ProbeSucceeded}}}
	cases := map[string]struct {
		inherited sets.Set[mark.Key]
		probes    []plan.PlannedProbe
		report    mark.PodReport
		owned     mark.Marks
		want      []mark.Key
	}{
		"not inherited":           {probes: []plan.PlannedProbe{idle}, report: known},
		"mark of the other state": {inherited: inherited, probes: []plan.PlannedProbe{idle}, report: known, want: []mark.Key{mark.Label("busy")}},
		"not declared":            {inherited: inherited, report: known},
		"condition of a provider": {
			inherited: sets.New(mark.Label("busy"), mark.ConditionType("game.io/idle")),
			probes:    []plan.PlannedProbe{idle}, report: mark.PodReport{Reported: true, Provider: true, States: known.States},
			want: []mark.Key{mark.Label("busy")},
		},
		"unknown state":             {inherited: inherited, probes: []plan.PlannedProbe{idle}, report: mark.PodReport{Reported: true}},
		"no report":                 {inherited: inherited, probes: []plan.PlannedProbe{idle}},
		"owned, no longer declared": {inherited: inherited, report: known, owned: labelled("idle", "true"), want: []mark.Key{mark.Label("idle")}},
		"owned, no report":          {inherited: inherited, probes: []plan.PlannedProbe{idle}, owned: labelled("idle", "true")},
		"owned, state no longer reported": {
			inherited: inherited, probes: []plan.PlannedProbe{idle}, report: mark.PodReport{Reported: true},
			owned: labelled("idle", "true"), want: []mark.Key{mark.Label("idle")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired := mark.Desired(tc.probes, tc.report, tc.owned)
			got := mark.Leftover(tc.inherited, tc.probes, tc.report, tc.owned, desired)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("leftover (-want +got):\n%s", diff)
			}
		})
	}
}

func labelled(key, value string) mark.Marks {
	return mark.Marks{mark.Label(key): text(value)}
}
