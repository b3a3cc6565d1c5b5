// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestStaleMarks(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := identity.ID{Marker: "web", Probe: "p"}
	planned := func(build func(*builders.ProbeBuilder)) plan.PlannedProbe {
		probe := builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").StaleAfter(30)
		build(probe)
		return plan.PlannedProbe{ID: id, Source: probe.Build()}
	}
	labels := planned(func(*builders.ProbeBuilder) {})
	condition := planned(func(b *builders.ProbeBuilder) { b.Condition("x/primary") })
	unknown := planned(func(b *builders.ProbeBuilder) { b.Label(v1alpha1.ProbeUnknown, "role", "unknown") })
	never := labels
	never.Source = builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").Build()

	of := func(cause staleness.Cause, seconds int) staleness.Outage {
		return staleness.Outage{Cause: cause, Since: begin, Length: time.Duration(seconds) * time.Second}
	}
	unsure, ended := of(staleness.AgentGone, 5), of(staleness.NodeGone, 29)
	unsure.StartUnknown, ended.Ended = true, begin.Add(29*time.Second)
	primary := mark.Marks{mark.Label("role"): {Text: "primary"}}
	key := mark.ConditionType("x/primary")
	stale := mark.Value{Condition: mark.Condition{
		Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonStale, Message: "The node or its agent has not been ready for 30s.",
		LastTransitionTime: metav1.NewTime(begin.Add(30 * time.Second)),
	}}
	current := mark.Value{Condition: mark.Condition{Status: corev1.ConditionTrue, Message: "ok"}}
	earlier := stale
	earlier.Condition.LastTransitionTime = metav1.NewTime(begin)
	both := mark.Marks{mark.Label("role"): {Text: "primary"}, key: current}
	state := v1alpha1.ContainerProbeState{Name: "web#p", State: v1alpha1.ProbeSucceeded, Message: "ok"}
	for name, tc := range map[string]struct {
		probe  plan.PlannedProbe
		outage staleness.Outage
		gone   bool
		owned  mark.Marks
		report mark.PodReport
		want   mark.Marks
	}{
		"current":             {probe: condition, owned: both, want: both},
		"not yet":             {probe: condition, outage: of(staleness.NodeNotReady, 29), owned: both, want: both},
		"stale":               {probe: condition, outage: of(staleness.NodeNotReady, 30), owned: both, want: mark.Marks{key: stale}},
		"stale, no condition": {probe: labels, outage: of(staleness.NodeNotReady, 30), owned: primary, want: mark.Marks{}},
		"stale, policy for Unknown": {
			probe: unknown, outage: of(staleness.NodeGone, 30), gone: true, owned: primary, want: mark.Marks{mark.Label("role"): {Text: "unknown"}},
		},
		"restarted, policy for Unknown": {
			probe: unknown, outage: unsure, owned: mark.Marks{mark.Label("role"): {Text: "unknown"}}, want: mark.Marks{mark.Label("role"): {Text: "unknown"}},
		},
		"stale since earlier": {
			probe: condition, outage: of(staleness.NodeGone, 90), owned: mark.Marks{key: earlier}, want: mark.Marks{key: earlier},
		},
		"never stale":                   {probe: never, outage: of(staleness.NodeNotReady, 3000), owned: primary, want: primary},
		"ended before":                  {probe: condition, outage: ended, owned: both, want: both},
		"ended before, after a restart": {probe: condition, outage: ended, owned: mark.Marks{key: stale}, want: both},

		"reports are gone":                  {probe: condition, outage: of(staleness.NodeGone, 30), gone: true, owned: both, want: mark.Marks{key: stale}},
		"reports are gone, not yet":         {probe: condition, outage: of(staleness.NodeGone, 29), gone: true, owned: both, want: both},
		"reports are gone, never stale":     {probe: never, outage: of(staleness.NodeGone, 30), gone: true, owned: primary, want: primary},
		"reports are gone, never had state": {probe: condition, outage: of(staleness.NodeGone, 30), gone: true, want: mark.Marks{}},

		"restarted, not checked": {
			probe: condition, outage: staleness.Outage{Cause: staleness.NotChecked}, owned: mark.Marks{key: stale}, want: mark.Marks{key: stale},
		},
		"restarted, not checked, no condition": {probe: labels, outage: staleness.Outage{Cause: staleness.NotChecked}, owned: mark.Marks{}, want: mark.Marks{}},
		"restarted, not checked, current":      {probe: labels, outage: staleness.Outage{Cause: staleness.NotChecked}, owned: primary, want: primary},
		"restarted, unsure":                    {probe: labels, outage: unsure, owned: mark.Marks{}, want: mark.Marks{}},
		"restarted, unsure, current":           {probe: condition, outage: unsure, owned: both, want: both},
		"sure":                                 {probe: labels, outage: of(staleness.AgentNotReady, 5), owned: mark.Marks{}, want: primary},
	} {
		t.Run(name, func(t *testing.T) {
			report := mark.PodReport{Outage: tc.outage}
			if !tc.gone {
				report.Reported, report.States = true, mark.States{id: state}
			}
			got := mark.Desired([]plan.PlannedProbe{tc.probe}, report, tc.owned)
			expect.Equal(t, "marks", tc.want, got)
		})
	}
	// Keys that belong to an earlier probe say nothing about the state.
	earlierProbe := plan.PlannedProbe{
		ID: identity.ID{Marker: "a", Probe: "p"}, Source: builders.Probe("p").Condition("x/primary").Label(v1alpha1.ProbeSucceeded, "zone", "a").Build(),
	}
	for name, probe := range map[string]plan.PlannedProbe{
		"a condition of another probe": planned(func(b *builders.ProbeBuilder) { b.Condition("x/primary") }),
		"a label of another probe":     planned(func(b *builders.ProbeBuilder) { b.Label(v1alpha1.ProbeUnknown, "zone", "unknown") }),
	} {
		t.Run(name, func(t *testing.T) {
			report := mark.PodReport{Reported: true, States: mark.States{id: state, earlierProbe.ID: state}, Outage: unsure}
			owned := mark.Marks{mark.Label("zone"): {Text: "a"}, key: current}
			got := mark.Desired([]plan.PlannedProbe{earlierProbe, probe}, report, owned)
			expect.Equal(t, "marks after a restart", owned, got)
		})
	}
	// A provider owns the condition.
	report := mark.PodReport{Reported: true, Provider: true, States: mark.States{id: state}, Outage: of(staleness.NodeNotReady, 30)}
	if got := mark.Desired([]plan.PlannedProbe{condition}, report, primary); len(got) > 0 {
		t.Errorf("marks on a virtual node that is lost: %v, want none", got)
	}
	got, _ := report.State(condition)
	if !report.IsStale(condition) || got.State != v1alpha1.ProbeUnknown {
		t.Errorf("state %+v, want Unknown", got)
	}
}

// A restart of the manager does not change the counts of stale states: as long as it is not known how long an outage has lasted, the marks
// say what is stale, and since when.
func TestCounted(t *testing.T) {
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := identity.ID{Marker: "web", Probe: "p"}
	planned := func(build func(*builders.ProbeBuilder)) plan.PlannedProbe {
		probe := builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").StaleAfter(30)
		build(probe)
		return plan.PlannedProbe{ID: id, Source: probe.Build()}
	}
	labels, condition := planned(func(*builders.ProbeBuilder) {}), planned(func(b *builders.ProbeBuilder) { b.Condition("x/primary") })
	shown := func(reason string) mark.Marks {
		return mark.Marks{
			mark.ConditionType("x/primary"): {Condition: mark.Condition{Status: "Unknown", Reason: reason, LastTransitionTime: metav1.NewTime(begin)}},
		}
	}
	started := staleness.Outage{Cause: staleness.AgentGone, Since: begin.Add(time.Hour), StartUnknown: true}
	reached, sure := started, started
	reached.Length, sure.Length, sure.StartUnknown = time.Minute, time.Minute, false
	ended := started
	ended.Ended = begin.Add(time.Hour)
	for name, tc := range map[string]struct {
		probe  plan.PlannedProbe
		state  v1alpha1.ProbeState
		outage staleness.Outage
		owned  mark.Marks
		want   bool
		since  time.Duration
	}{
		"current":   {probe: condition, state: v1alpha1.ProbeSucceeded, owned: shown(v1alpha1.ReasonStale), since: time.Second},
		"restarted": {probe: condition, state: v1alpha1.ProbeSucceeded, outage: started, owned: shown(v1alpha1.ReasonStale), want: true},
		"restarted, not checked": {
			probe: condition, state: v1alpha1.ProbeSucceeded, outage: staleness.Outage{Cause: staleness.NotChecked}, owned: shown(v1alpha1.ReasonStale),
			want: true,
		},
		"restarted, not stale before":    {probe: condition, state: v1alpha1.ProbeSucceeded, outage: started, owned: shown(""), since: time.Second},
		"restarted, stale again":         {probe: condition, state: v1alpha1.ProbeSucceeded, outage: reached, owned: shown(v1alpha1.ReasonStale), want: true},
		"stale, not written yet":         {probe: condition, state: v1alpha1.ProbeSucceeded, outage: sure, want: true, since: time.Hour + 30*time.Second},
		"stale, nobody knows since when": {probe: labels, state: v1alpha1.ProbeSucceeded, outage: reached, want: true, since: time.Second},
		"restarted, no condition":        {probe: labels, state: v1alpha1.ProbeSucceeded, outage: started, want: true, since: time.Second},
		"no condition, same in both":     {probe: labels, state: v1alpha1.ProbeFailed, outage: started, since: time.Second},
		"ended before, after the restart": {
			probe: condition, state: v1alpha1.ProbeSucceeded, outage: ended, owned: shown(v1alpha1.ReasonStale), since: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := v1alpha1.ContainerProbeState{Name: "web#p", State: tc.state, LastTransitionTime: metav1.NewTime(begin.Add(time.Second))}
			claims, _ := mark.Claim([]plan.PlannedProbe{tc.probe})
			got, stale, known := mark.PodReport{Outage: tc.outage}.Counted(tc.probe, state, claims, tc.owned)
			if stale != tc.want || !known || (got.State == v1alpha1.ProbeUnknown) != tc.want || !got.LastTransitionTime.Time.Equal(begin.Add(tc.since)) {
				t.Errorf("%+v, stale %t, known %t; want stale %t since %s", got, stale, known, tc.want, begin.Add(tc.since))
			}
		})
	}
}
