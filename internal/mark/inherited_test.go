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

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/test/builders"
)

func label(name string) mark.Key { return mark.Key{Kind: mark.KindLabel, Name: name} }

// shown are the managed fields in short: manager, operation, subresource, set.
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
		`kruise-manager Update  {"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`,
		`kruise-manager Update status {"f:metadata":{"f:labels":{"f:gameserver-idle":{},"f:gone":{}},` +
			`"f:annotations":{"f:controller.kubernetes.io/pod-deletion-cost":{}}},` +
			`"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{}}}}`,
		"kruise-manager Update status " + broken,
	}
	kept := mark.Entries(managed)
	if diff := cmp.Diff(want, shown(kept)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shown(kept), shown(mark.Entries(kept))); diff != "" {
		t.Errorf("keeping twice differs (-once +twice):\n%s", diff)
	}
}

func TestInherited(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a") }
	cases := map[string]struct {
		pod     *builders.PodBuilder
		want    []mark.Key
		refused bool
	}{
		"a pod that never was OpenKruise's": {pod: pod().Updated("kubelet", "status", ownedSet).ManagedFields("seamark", "status", ownedSet)},
		"an apply by its name":              {pod: pod().ManagedFields("kruise-manager", "status", ownedSet)},
		"all kinds, of two entries": {
			pod: pod().Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`).Updated("kruise-manager", "status", ownedSet),
			want: []mark.Key{
				{Kind: mark.KindAnnotation, Name: "controller.kubernetes.io/pod-deletion-cost"},
				{Kind: mark.KindCondition, Name: "game.io/idle"},
				label("app"), label("gameserver-idle"), label("gone"),
			},
		},
		"a broken set":     {pod: pod().Updated("kruise-manager", "status", `{"f:metadata":[]}`), refused: true},
		"a broken element": {pod: pod().Updated("kruise-manager", "status", `{"f:status":{"f:conditions":{"k:{":{}}}}`), refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mark.Inherited(tc.pod.Build().ManagedFields)
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("error %v, refused wanted: %t", err, tc.refused)
			}
			keys := slices.SortedFunc(maps.Keys(got), func(a, b mark.Key) int { return strings.Compare(a.String(), b.String()) })
			if diff := cmp.Diff(tc.want, keys); diff != "" {
				t.Errorf("inherited (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeftover(t *testing.T) {
	idle := plan.Probe{ID: probeid.ID{Marker: "m", Probe: "idle"}, Source: builders.Probe("idle").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "idle", "true").Label(v1alpha1.ProbeFailed, "busy", "true").Build()}
	inherited := map[mark.Key]bool{label("idle"): true, label("busy"): true, label("app"): true}
	known := mark.Report{Reported: true, States: mark.States{idle.ID: {State: v1alpha1.ProbeSucceeded}}}
	cases := map[string]struct {
		inherited map[mark.Key]bool
		probes    []plan.Probe
		report    mark.Report
		owned     mark.Marks
		want      []mark.Key
	}{
		"not inherited":        {probes: []plan.Probe{idle}, report: known},
		"of the other state":   {inherited: inherited, probes: []plan.Probe{idle}, report: known, want: []mark.Key{label("busy")}},
		"declared by no probe": {inherited: inherited, report: known},
		"a provider's condition": {
			inherited: map[mark.Key]bool{label("busy"): true, {Kind: mark.KindCondition, Name: "game.io/idle"}: true},
			probes:    []plan.Probe{idle}, report: mark.Report{Reported: true, Provider: true, States: known.States},
			want: []mark.Key{label("busy")},
		},
		"the state isn't known":         {inherited: inherited, probes: []plan.Probe{idle}, report: mark.Report{Reported: true}},
		"nothing is reported":           {inherited: inherited, probes: []plan.Probe{idle}},
		"ours, and declared no more":    {inherited: inherited, report: known, owned: labelled("idle", "true"), want: []mark.Key{label("idle")}},
		"ours, and nothing is reported": {inherited: inherited, probes: []plan.Probe{idle}, owned: labelled("idle", "true")},
		"ours, and the state is lost": {
			inherited: inherited, probes: []plan.Probe{idle}, report: mark.Report{Reported: true},
			owned: labelled("idle", "true"), want: []mark.Key{label("idle")},
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
	return mark.Marks{Labels: map[string]string{key: value}}
}
