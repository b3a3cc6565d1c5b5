// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/test/builders"
)

var (
	webIdle = probeid.ID{Marker: "web", Probe: "idle"}
	webBusy = probeid.ID{Marker: "web", Probe: "busy"}
	apiIdle = probeid.ID{Marker: "api", Probe: "idle"}
	probed  = metav1.Unix(1_700_000_100, 0)
	changed = metav1.Unix(1_700_000_000, 0)
)

// planOf plans a pod that all the markers match.
func planOf(t testing.TB, markers ...*v1alpha1.PodProbeMarker) []plan.Probe {
	t.Helper()
	compiled := make([]*plan.Marker, 0, len(markers))
	for _, m := range markers {
		c, err := plan.Compile(m)
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, c)
	}
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	return plan.Pod(pod, compiled, plan.KubernetesDefaults()).Probes
}

func state(s v1alpha1.ProbeState, message string) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{
		State: s, Message: message, LastProbeTime: probed, LastTransitionTime: changed,
	}
}

func condition(conditionType string, status corev1.ConditionStatus, message string) mark.Condition {
	return mark.Condition{
		Type: conditionType, Status: status, Message: message,
		LastProbeTime: metav1.Time{Time: probed.UTC()}, LastTransitionTime: metav1.Time{Time: changed.UTC()},
	}
}

func documented() *builders.ProbeBuilder {
	return builders.Probe("idle").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "gameserver-idle", "true").
		Label(v1alpha1.ProbeFailed, "gameserver-idle", "false").
		Annotation(v1alpha1.ProbeSucceeded, "cost", "-10").
		Annotation(v1alpha1.ProbeFailed, "cost", "10")
}

func TestDesired(t *testing.T) {
	twoMarkers := []*v1alpha1.PodProbeMarker{
		builders.Marker("ns", "web").Probe(builders.Probe("idle").Condition("game.io/idle").
			Label(v1alpha1.ProbeSucceeded, "idle", "web").Label(v1alpha1.ProbeSucceeded, "web", "yes")).Build(),
		builders.Marker("ns", "api").Probe(builders.Probe("idle").Condition("game.io/idle").
			Label(v1alpha1.ProbeFailed, "idle", "api")).Build(),
	}
	cases := map[string]struct {
		markers []*v1alpha1.PodProbeMarker
		states  mark.States
		want    mark.Marks
	}{
		"no probes": {
			states: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "")},
		},
		"no state yet": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
		},
		"succeeded": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "idle")},
			want: mark.Marks{
				Labels:      map[string]string{"gameserver-idle": "true"},
				Annotations: map[string]string{"cost": "-10"},
				Conditions:  map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionTrue, "idle")},
			},
		},
		"failed": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeFailed, "match 3")},
			want: mark.Marks{
				Labels:      map[string]string{"gameserver-idle": "false"},
				Annotations: map[string]string{"cost": "10"},
				Conditions:  map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionFalse, "match 3")},
			},
		},
		"unknown has a condition and no policy": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeUnknown, "")},
			want: mark.Marks{
				Conditions: map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionUnknown, "")},
			},
		},
		"only a Succeeded policy: nothing of it on failure": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").
				Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()},
			states: mark.States{webIdle: state(v1alpha1.ProbeFailed, "")},
		},
		"a state that is not planned counts for nothing": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webBusy: state(v1alpha1.ProbeSucceeded, ""), apiIdle: state(v1alpha1.ProbeSucceeded, "")},
		},
		"the loser of a key keeps its other marks": {
			markers: twoMarkers,
			states: mark.States{
				webIdle: state(v1alpha1.ProbeSucceeded, "web"), apiIdle: state(v1alpha1.ProbeFailed, "api"),
			},
			want: mark.Marks{
				Labels:     map[string]string{"idle": "api", "web": "yes"},
				Conditions: map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionFalse, "api")},
			},
		},
		"a winner that sets the key in its other state only still has it": {
			markers: twoMarkers,
			states: mark.States{
				webIdle: state(v1alpha1.ProbeSucceeded, "web"), apiIdle: state(v1alpha1.ProbeSucceeded, "api"),
			},
			want: mark.Marks{
				Labels:     map[string]string{"web": "yes"},
				Conditions: map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionTrue, "api")},
			},
		},
		"a winner without a state still has the key": {
			markers: twoMarkers,
			states:  mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "web")},
			want:    mark.Marks{Labels: map[string]string{"web": "yes"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mark.Desired(planOf(t, tc.markers...), mark.Report{Reported: true, States: tc.states}, mark.Marks{})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredWithoutAReport(t *testing.T) {
	owned := mark.Marks{
		Labels:     map[string]string{"gameserver-idle": "true", "old": "1"},
		Conditions: map[string]mark.Condition{"game.io/idle": condition("game.io/idle", corev1.ConditionTrue, "")},
	}
	want := mark.Marks{Labels: map[string]string{"gameserver-idle": "true"}, Conditions: owned.Conditions}
	probes := planOf(t, builders.Marker("ns", "web").Probe(documented()).Build())
	got := mark.Desired(probes, mark.Report{}, owned)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks kept (-want +got):\n%s", diff)
	}
	if got := mark.Desired(nil, mark.Report{}, owned); !got.IsEmpty() {
		t.Errorf("marks kept of a pod without probes: %v", got)
	}
}

func TestClaimConflicts(t *testing.T) {
	label := func(probe string) *builders.ProbeBuilder {
		return builders.Probe(probe).
			Label(v1alpha1.ProbeSucceeded, "idle", probe).Label(v1alpha1.ProbeFailed, "idle", "no")
	}
	cases := map[string]struct {
		markers []*v1alpha1.PodProbeMarker
		want    []mark.Conflict
	}{
		"two states of one probe share a key": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).Build()},
		},
		"one name as label and annotation is two keys": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).
				Probe(builders.Probe("busy").Annotation(v1alpha1.ProbeSucceeded, "idle", "x")).Build()},
		},
		"probe order within a marker": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).Probe(label("busy")).Build()},
			want:    []mark.Conflict{{Key: mark.Key{Kind: mark.KindLabel, Name: "idle"}, Winner: webIdle, Loser: webBusy}},
		},
		"marker names before probe order": {
			markers: []*v1alpha1.PodProbeMarker{
				builders.Marker("ns", "web").Probe(label("idle")).Build(),
				builders.Marker("ns", "api").Probe(label("idle")).Build(),
			},
			want: []mark.Conflict{{Key: mark.Key{Kind: mark.KindLabel, Name: "idle"}, Winner: apiIdle, Loser: webIdle}},
		},
		"a condition type": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").
				Probe(builders.Probe("idle").Condition("a.io/b")).Probe(builders.Probe("busy").Condition("a.io/b")).Build()},
			want: []mark.Conflict{{Key: mark.Key{Kind: mark.KindCondition, Name: "a.io/b"}, Winner: webIdle, Loser: webBusy}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := mark.Claim(planOf(t, tc.markers...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEqual(t *testing.T) {
	base := mark.Marks{
		Labels:      map[string]string{"a": "1"},
		Annotations: map[string]string{"b": "2"},
		Conditions:  map[string]mark.Condition{"c": condition("c", corev1.ConditionTrue, "m")},
	}
	with := func(change func(*mark.Condition)) mark.Marks {
		c := base.Conditions["c"]
		change(&c)
		return mark.Marks{Labels: base.Labels, Annotations: base.Annotations, Conditions: map[string]mark.Condition{"c": c}}
	}
	cases := map[string]struct {
		other mark.Marks
		equal bool
	}{
		"itself":               {other: base, equal: true},
		"nothing":              {other: mark.Marks{}},
		"another label value":  {other: mark.Marks{Labels: map[string]string{"a": "2"}, Annotations: base.Annotations, Conditions: base.Conditions}},
		"no annotation":        {other: mark.Marks{Labels: base.Labels, Conditions: base.Conditions}},
		"another message":      {other: with(func(c *mark.Condition) { c.Message = "n" })},
		"a later second":       {other: with(func(c *mark.Condition) { c.LastProbeTime.Time = c.LastProbeTime.Add(time.Second) })},
		"a later millisecond":  {other: with(func(c *mark.Condition) { c.LastProbeTime.Time = c.LastProbeTime.Add(time.Millisecond) }), equal: true},
		"the time zone":        {other: with(func(c *mark.Condition) { c.LastProbeTime.Time = c.LastProbeTime.In(time.FixedZone("x", 3600)) }), equal: true},
		"no transition time":   {other: with(func(c *mark.Condition) { c.LastTransitionTime = metav1.Time{} })},
		"another status alone": {other: with(func(c *mark.Condition) { c.Status = corev1.ConditionFalse })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := base.Equal(tc.other); got != tc.equal {
				t.Errorf("Equal = %t, want %t", got, tc.equal)
			}
		})
	}
}
