// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
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
	const (
		template = `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:gameserver-idle":{}},"f:generateName":{}},"f:spec":{"f:nodeName":{}}}`
		broken   = `{"f:metadata":["gameserver-idle"]}`
	)
	others := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").
			Updated("kube-controller-manager", "", template).
			Updated("kubectl", "", `{"f:metadata":{"f:annotations":{"f:gameserver-idle":{}}}}`).
			Updated("kubelet", "status", `{"f:status":{"f:phase":{}}}`).
			Updated("controller", "status", ownedSet).
			Updated("broken", "", broken)
	}
	cases := map[string]struct {
		pod  *builders.PodBuilder
		want []string
	}{
		"no marks": {pod: others()},
		"entries with a mark": {pod: others().ManagedFields("seamark", "status", ownedSet), want: []string{
			"seamark Apply status " + ownedSet,
			`kube-controller-manager Update  {"f:metadata":{"f:labels":{"f:gameserver-idle":{}}}}`,
			`controller Update status {"f:metadata":{"f:annotations":{"f:controller.kubernetes.io/pod-deletion-cost":{}},` +
				`"f:labels":{"f:gameserver-idle":{},"f:gone":{}}},` +
				`"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{}}}}`,
		}},
		"own entry is invalid": {
			pod:  others().ManagedFields("seamark", "status", broken),
			want: []string{"seamark Apply status " + broken},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kept := mark.NewParser().Entries(tc.pod.Build().ManagedFields)
			expect.Equal(t, "kept", tc.want, shown(kept))
			expect.Equal(t, "Entries applied twice", shown(kept), shown(mark.NewParser().Entries(kept)))
		})
	}
}

func TestSameFields(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a") }
	const other = `{"f:metadata":{"f:labels":{"f:gameserver-idle":{}}}}`
	marked := pod().ManagedFields("seamark", "status", ownedSet).Updated("kubectl", "", other)
	cases := map[string]struct {
		before, after *builders.PodBuilder
		want          bool
	}{
		"no marks":                    {pod(), pod(), true},
		"entries of others, no marks": {pod().Updated("kubectl", "", "{}"), pod(), true},
		"same entries":                {marked, marked, true},
		"first marks":                 {pod(), marked, false},
		"marks removed":               {marked, pod(), false},
		"other fields":                {marked, pod().ManagedFields("seamark", "status", other).Updated("kubectl", "", other), false},
		"owner added":                 {pod().ManagedFields("seamark", "status", ownedSet), marked, false},
		"another owner":               {marked, pod().ManagedFields("seamark", "status", ownedSet).Updated("helm", "", other), false},
		"another operation":           {marked, pod().ManagedFields("seamark", "status", ownedSet).ManagedFields("kubectl", "", other), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "SameFields", tc.want, mark.SameFields(tc.before.Build().ManagedFields, tc.after.Build().ManagedFields))
		})
	}
}

func TestLeftover(t *testing.T) {
	const (
		idleLabel = `{"f:metadata":{"f:labels":{"f:idle":{}}}}`
		busyNote  = `{"f:metadata":{"f:annotations":{"f:busy":{}}}}`
		condition = `{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{}}}}`
	)
	idle := plan.PlannedProbe{ID: identity.ID{Marker: "m", Probe: "idle"}, Source: builders.Probe("idle").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "idle", "true").Annotation(v1alpha1.ProbeFailed, "busy", "true").Build()}
	planned := []plan.PlannedProbe{idle}
	in := func(state v1alpha1.ProbeState) mark.PodReport {
		return mark.PodReport{Reported: true, States: mark.States{idle.ID: {State: state}}}
	}
	// The template of the pod has a key for each state.
	pod := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").Annotation("busy", "true").
			Updated("kube-controller-manager", "", `{"f:metadata":{"f:labels":{"f:app":{},"f:idle":{}},"f:annotations":{"f:busy":{}}}}`)
	}
	cases := map[string]struct {
		pod    *builders.PodBuilder
		probes []plan.PlannedProbe
		report mark.PodReport
		want   []mark.Key
	}{
		"no probe":                     {pod: pod(), report: in(v1alpha1.ProbeFailed)},
		"no report":                    {pod: pod(), probes: planned},
		"no state":                     {pod: pod(), probes: planned, report: mark.PodReport{Reported: true}},
		"succeeded":                    {pod: pod(), probes: planned, report: in(v1alpha1.ProbeSucceeded), want: []mark.Key{mark.Annotation("busy")}},
		"failed, never set by Seamark": {pod: pod(), probes: planned, report: in(v1alpha1.ProbeFailed), want: []mark.Key{mark.Label("idle")}},
		"failed, shared": {
			pod: pod().ManagedFields("seamark", "status", idleLabel), probes: planned, report: in(v1alpha1.ProbeFailed), want: []mark.Key{mark.Label("idle")},
		},
		"unknown": {
			pod: pod(), probes: planned, report: in(v1alpha1.ProbeUnknown), want: []mark.Key{mark.Annotation("busy"), mark.Label("idle")},
		},
		"shared, marker is gone": {
			pod: pod().ManagedFields("seamark", "status", busyNote), report: in(v1alpha1.ProbeFailed), want: []mark.Key{mark.Annotation("busy")},
		},
		"not shared, removed by apply": {
			pod: builders.Pod("ns", "a").Label("idle", "true").ManagedFields("seamark", "status", idleLabel), probes: planned, report: in(v1alpha1.ProbeFailed),
		},
		"shared condition, marker gone": {
			pod:  pod().Condition(idleCondition()).ManagedFields("seamark", "status", condition).Updated("x", "status", condition),
			want: []mark.Key{mark.ConditionType("game.io/idle")},
		},
		"condition of another manager": {
			pod: builders.Pod("ns", "a").Condition(idleCondition()).Updated("x", "status", condition), probes: planned, report: in(v1alpha1.ProbeFailed),
		},
		"condition shared with provider": {
			pod:    builders.Pod("ns", "a").Condition(idleCondition()).ManagedFields("seamark", "status", condition).Updated("vk", "status", condition),
			report: mark.PodReport{Reported: true, Provider: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := tc.pod.Build()
			owned, err := mark.Owned(object)
			expect.NoError(t, err)
			desired := mark.Desired(tc.probes, tc.report, owned)
			expect.Equal(t, "leftover", tc.want, mark.Leftover(object, tc.probes, tc.report, owned, desired))
		})
	}
}

func idleCondition() corev1.PodCondition {
	return corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}
}

// FuzzShared parses arbitrary managedFields of another manager. The entries that the cache keeps
// must give the same result as all of them, and keys that Seamark does not own are not shared.
func FuzzShared(f *testing.F) {
	for _, seed := range []string{
		ownedSet,
		`{"f:metadata":{"f:labels":{".":{},"f:":{},"gone":{}},"f:annotations":null},"f:spec":{"f:nodeName":{}}}`,
		`{"f:status":{"f:conditions":{"k:{}":{},"k:[1]":{},"k:{\"type\":1}":{},"v:1":{}}}}`,
		`{"f:metadata":[]}`, `{`, ``, `null`,
	} {
		f.Add(ownedSet, seed)
		f.Add(seed, ownedSet)
	}
	f.Fuzz(func(t *testing.T, own, fields string) {
		pod := builders.Pod("ns", "pod").ManagedFields("seamark", "status", own).Updated("kubectl", "", fields).Build()
		whole := mark.Shared(pod.ManagedFields)
		kept := mark.Shared(mark.NewParser().Entries(pod.ManagedFields))
		if !whole.Equal(kept) {
			t.Errorf("shared in all entries: %v; in the kept ones: %v", whole, kept)
		}
		alone := builders.Pod("ns", "pod").Updated("kubectl", "", fields).Build()
		if shared := mark.Shared(alone.ManagedFields); len(shared) > 0 {
			t.Errorf("%v is shared with nobody", shared)
		}
	})
}
