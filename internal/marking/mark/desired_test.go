// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

var (
	webIdle = identity.ID{Marker: "web", Probe: "idle"}
	webBusy = identity.ID{Marker: "web", Probe: "busy"}
	apiIdle = identity.ID{Marker: "api", Probe: "idle"}
	probed  = metav1.Unix(1_700_000_100, 0)
	changed = metav1.Unix(1_700_000_000, 0)
)

// planOf returns the plan of a pod that all the markers select.
func planOf(t testing.TB, markers ...*v1alpha1.PodProbeMarker) []plan.PlannedProbe {
	t.Helper()
	compiled := make([]*plan.Marker, 0, len(markers))
	for _, m := range markers {
		c, err := plan.Compile(m)
		expect.NoError(t, err)
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

func text(value string) mark.Value { return mark.Value{Text: value} }

func condition(status corev1.ConditionStatus, message string) mark.Value {
	return mark.Value{Condition: mark.Condition{
		Status: status, Message: message,
		LastProbeTime: metav1.Time{Time: probed.UTC()}, LastTransitionTime: metav1.Time{Time: changed.UTC()},
	}}
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
		"no state": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
		},
		"succeeded": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "idle")},
			want: mark.Marks{
				mark.Label("gameserver-idle"):      text("true"),
				mark.Annotation("cost"):            text("-10"),
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionTrue, "idle"),
			},
		},
		"failed": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeFailed, "match 3")},
			want: mark.Marks{
				mark.Label("gameserver-idle"):      text("false"),
				mark.Annotation("cost"):            text("10"),
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionFalse, "match 3"),
			},
		},
		"unknown has a condition but no policy": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webIdle: state(v1alpha1.ProbeUnknown, "")},
			want: mark.Marks{
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionUnknown, ""),
			},
		},
		"policy of unknown": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").
				Probe(documented().Label(v1alpha1.ProbeUnknown, "gameserver-idle", "unknown")).Build()},
			states: mark.States{webIdle: state(v1alpha1.ProbeUnknown, "")},
			want: mark.Marks{
				mark.Label("gameserver-idle"):      text("unknown"),
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionUnknown, ""),
			},
		},
		"no policy for the state": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").
				Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()},
			states: mark.States{webIdle: state(v1alpha1.ProbeFailed, "")},
		},
		"states of probes that are not planned": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(documented()).Build()},
			states:  mark.States{webBusy: state(v1alpha1.ProbeSucceeded, ""), apiIdle: state(v1alpha1.ProbeSucceeded, "")},
		},
		"the loser of a conflict keeps its other marks": {
			markers: twoMarkers,
			states: mark.States{
				webIdle: state(v1alpha1.ProbeSucceeded, "web"), apiIdle: state(v1alpha1.ProbeFailed, "api"),
			},
			want: mark.Marks{
				mark.Label("idle"): text("api"), mark.Label("web"): text("yes"),
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionFalse, "api"),
			},
		},
		"the winner reserves a key that it sets only in its other state": {
			markers: twoMarkers,
			states: mark.States{
				webIdle: state(v1alpha1.ProbeSucceeded, "web"), apiIdle: state(v1alpha1.ProbeSucceeded, "api"),
			},
			want: mark.Marks{
				mark.Label("web"):                  text("yes"),
				mark.ConditionType("game.io/idle"): condition(corev1.ConditionTrue, "api"),
			},
		},
		"the winner reserves its keys without a state": {
			markers: twoMarkers,
			states:  mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "web")},
			want:    mark.Marks{mark.Label("web"): text("yes")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mark.Desired(planOf(t, tc.markers...), mark.PodReport{Reported: true, States: tc.states}, mark.Marks{})
			expect.Equal(t, "marks", tc.want, got, cmpopts.EquateEmpty())
		})
	}
}

func TestDesiredKeepsDeclaredMarksWithoutReport(t *testing.T) {
	owned := mark.Marks{
		mark.Label("gameserver-idle"): text("true"), mark.Label("old"): text("1"),
		mark.ConditionType("game.io/idle"): condition(corev1.ConditionTrue, ""),
	}
	want := mark.Marks{mark.Label("gameserver-idle"): text("true"), mark.ConditionType("game.io/idle"): condition(corev1.ConditionTrue, "")}
	probes := planOf(t, builders.Marker("ns", "web").Probe(documented()).Build())
	got := mark.Desired(probes, mark.PodReport{}, owned)
	expect.Equal(t, "marks kept", want, got)
	if got := mark.Desired(nil, mark.PodReport{}, owned); len(got) > 0 {
		t.Errorf("marks of a pod without probes: %v, want none", got)
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
		"one key in two states of a probe": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).Build()},
		},
		"label and annotation with the same name": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).
				Probe(builders.Probe("busy").Annotation(v1alpha1.ProbeSucceeded, "idle", "x")).Build()},
		},
		"probe order within a marker": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(label("idle")).Probe(label("busy")).Build()},
			want:    []mark.Conflict{{Key: mark.Label("idle"), Winner: webIdle, Loser: webBusy}},
		},
		"marker name before probe order": {
			markers: []*v1alpha1.PodProbeMarker{
				builders.Marker("ns", "web").Probe(label("idle")).Build(),
				builders.Marker("ns", "api").Probe(label("idle")).Build(),
			},
			want: []mark.Conflict{{Key: mark.Label("idle"), Winner: apiIdle, Loser: webIdle}},
		},
		"condition type": {
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").
				Probe(builders.Probe("idle").Condition("a.io/b")).Probe(builders.Probe("busy").Condition("a.io/b")).Build()},
			want: []mark.Conflict{{Key: mark.ConditionType("a.io/b"), Winner: webIdle, Loser: webBusy}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := mark.Claim(planOf(t, tc.markers...))
			expect.Equal(t, "conflicts", tc.want, got)
		})
	}
}

func TestEqual(t *testing.T) {
	base := mark.Marks{
		mark.Label("a"):         text("1"),
		mark.Annotation("b"):    text("2"),
		mark.ConditionType("c"): condition(corev1.ConditionTrue, "m"),
	}
	with := func(key mark.Key, change func(*mark.Value)) mark.Marks {
		changed := maps.Clone(base)
		value := changed[key]
		change(&value)
		changed[key] = value
		return changed
	}
	without := func(key mark.Key) mark.Marks {
		less := maps.Clone(base)
		delete(less, key)
		return less
	}
	of := mark.ConditionType("c")
	cases := map[string]struct {
		other mark.Marks
		equal bool
	}{
		"same":                  {other: maps.Clone(base), equal: true},
		"empty":                 {},
		"different label value": {other: with(mark.Label("a"), func(v *mark.Value) { v.Text = "2" })},
		"missing annotation":    {other: without(mark.Annotation("b"))},
		"different message":     {other: with(of, func(v *mark.Value) { v.Condition.Message = "n" })},
		"later second": {other: with(of, func(v *mark.Value) {
			v.Condition.LastProbeTime.Time = v.Condition.LastProbeTime.Add(time.Second)
		})},
		"later millisecond": {equal: true, other: with(of, func(v *mark.Value) {
			v.Condition.LastProbeTime.Time = v.Condition.LastProbeTime.Add(time.Millisecond)
		})},
		"different time zone": {equal: true, other: with(of, func(v *mark.Value) {
			v.Condition.LastProbeTime.Time = v.Condition.LastProbeTime.In(time.FixedZone("x", 3600))
		})},
		"missing transition time": {other: with(of, func(v *mark.Value) { v.Condition.LastTransitionTime = metav1.Time{} })},
		"different status":        {other: with(of, func(v *mark.Value) { v.Condition.Status = corev1.ConditionFalse })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "Equal", tc.equal, base.Equal(tc.other))
		})
	}
}

// A state of a probe becomes a label of its pod in three steps: the manager plans the probe, the agent
// reports the state, and the manager decides the marks.
func Example() {
	marker, err := plan.Compile(builders.Marker("games", "players").
		Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")).Build())
	if err != nil {
		panic(err)
	}
	pod := builders.Pod("games", "server-0").Label("app", "game").Build()
	markers, defaults := []*plan.Marker{marker}, plan.KubernetesDefaults()

	// The manager writes the plan of the node to its NodePodProbe.
	node := plan.Node([]*corev1.Pod{pod}, markers, defaults)
	fmt.Println("planned:", node.PodProbes[0].Name, node.PodProbes[0].Probes[0].Name)

	// The agent evaluates the results of the probe, and reports the state in a ProbeReport.
	key, err := identity.KeyOf(&node.PodProbes[0], &node.PodProbes[0].Probes[0])
	if err != nil {
		panic(err)
	}
	decision := report.Decide(time.Unix(1_700_000_000, 0), report.Plan{Generation: 1, Pods: node.PodProbes}, report.Record{},
		report.States{key: thresholds.State{State: v1alpha1.ProbeSucceeded}}, nil)
	written := decision.Writes[0]
	fmt.Println("reported:", seamarkv1alpha1.SliceName("node-1", written.Number), written.Pods[0].Probes[0].State)

	// The manager sets the marks that the state requires.
	stored := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{{NodeName: "node-1", Pods: written.Pods}}}
	probes := plan.Pod(pod, markers, defaults).Probes
	desired := mark.Desired(probes, stored.OfPod(pod.UID), mark.Marks{})
	for _, key := range desired.Keys() {
		fmt.Printf("mark: %s=%s\n", key, desired[key].Text)
	}
	// Output:
	// planned: server-0 players#idle
	// reported: node-1.0 Succeeded
	// mark: label idle=true
}
