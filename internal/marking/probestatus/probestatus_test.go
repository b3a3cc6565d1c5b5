// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestatus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

var (
	probed  = metav1.Unix(2000, 0)
	changed = metav1.Unix(1000, 0)
)

const (
	idle = `{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:lastProbeTime":{},` +
		`"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}}`
	healthy = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
)

// input is a pod whose probe is planned, run and reported.
type input struct {
	pod    *builders.PodBuilder
	marker *builders.MarkerBuilder
	change func(*probestatus.Input)
}

func newInput() input {
	return input{
		pod: builders.Pod("ns", "game-0").Label("app", "game").Node("n1"),
		marker: builders.Marker("ns", "game").Probe(builders.Probe("idle").Condition("game.io/idle").
			Label(v1alpha1.ProbeSucceeded, "healthy", "yes").Label(v1alpha1.ProbeFailed, "healthy", "no")),
	}
}

func state(name string, s v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{Name: name, State: s, LastProbeTime: probed, LastTransitionTime: changed, Message: "no match"}
}

func (i input) build(t *testing.T) probestatus.Input {
	t.Helper()
	pod, marker := i.pod.Build(), i.marker.Build()
	in := probestatus.Input{
		Options: podview.Options{Defaults: plan.KubernetesDefaults(), Serverless: true},
		Pods:    []*corev1.Pod{pod}, Markers: []*v1alpha1.PodProbeMarker{marker},
		Nodes:   map[string]*metav1.PartialObjectMetadata{"n1": {ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
		Plans:   map[string]*v1alpha1.NodePodProbe{},
		Reports: map[string][]*seamarkv1alpha1.ProbeReport{},
	}
	if compiled, err := plan.Compile(marker); err == nil {
		in.Plans["n1"] = &v1alpha1.NodePodProbe{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Generation: 3},
			Spec:       plan.Node([]*corev1.Pod{pod}, []*plan.Marker{compiled}, in.Defaults),
			Status:     v1alpha1.NodePodProbeStatus{ObservedGeneration: 3, ProbeReports: true},
		}
	}
	in.Reports["n1"] = []*seamarkv1alpha1.ProbeReport{{NodeName: "n1", Pods: []seamarkv1alpha1.PodReport{{
		Namespace: "ns", Name: "game-0", UID: string(pod.UID),
		Probes: []v1alpha1.ContainerProbeState{state("game#idle", v1alpha1.ProbeFailed)},
	}}}}
	if i.change != nil {
		i.change(&in)
	}
	return in
}

func condition(status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: "game.io/idle", Status: status, LastProbeTime: probed, LastTransitionTime: changed, Message: "full"}
}

func noReports(in *probestatus.Input) {
	in.Reports, in.Plans, in.Nodes = nil, nil, nil
	in.ReportsUnread, in.PlansUnread, in.NodesUnread = true, true, true
}

// row is a row without a state.
func row(edit func(*probestatus.Row)) probestatus.Row {
	r := probestatus.Row{Namespace: "ns", Pod: "game-0", UID: "uid-game-0", Node: "n1", Marker: "game", Probe: "idle", Container: "main"}
	if edit != nil {
		edit(&r)
	}
	return r
}

func reported(r *probestatus.Row) {
	r.State, r.Source, r.Message = v1alpha1.ProbeFailed, probestatus.SourceReport, "no match"
	r.LastProbeTime, r.LastTransitionTime = probed, changed
}

func conditionOf(s v1alpha1.ProbeState, source probestatus.Source) func(*probestatus.Row) {
	return func(r *probestatus.Row) {
		r.State, r.Source, r.Message, r.LastProbeTime, r.LastTransitionTime = s, source, "full", probed, changed
	}
}

func problem(reason diagnosis.Reason, message string) func(*probestatus.Row) {
	return func(r *probestatus.Row) { r.Problem = &probestatus.Problem{Reason: reason, Message: message} }
}

func both(edits ...func(*probestatus.Row)) func(*probestatus.Row) {
	return func(r *probestatus.Row) {
		for _, edit := range edits {
			edit(r)
		}
	}
}

func marked(kind mark.Kind, name, value string) func(*probestatus.Row) {
	return func(r *probestatus.Row) {
		r.Marks = append(r.Marks, probestatus.Mark{Kind: kind, Name: name, Value: value})
	}
}

func TestRow(t *testing.T) {
	idleMark, noMark := marked(mark.KindCondition, "game.io/idle", "True"), marked(mark.KindLabel, "healthy", "no")
	for name, test := range map[string]struct {
		edit func(*input)
		want func(*probestatus.Row)
	}{
		"reported":                 {func(*input) {}, reported},
		"reported in the status":   {inStatus, reported},
		"nothing reported yet":     {withReports(), nil},
		"state of an older marker": {withState("00000000"), problem("EarlierMarker", "the reported state is that of an earlier marker with the same name")},
		"stale": {func(i *input) {
			stale := condition("Unknown")
			stale.Reason = v1alpha1.ReasonStale
			i.pod.Condition(stale).ManagedFields(v1alpha1.FieldManager, "status", strings.Replace(idle, `"f:message":{}`, `"f:message":{},"f:reason":{}`, 1))
			i.marker = builders.Marker("ns", "game").Probe(builders.Probe("idle").Condition("game.io/idle").StaleAfter(10))
		}, both(conditionOf(v1alpha1.ProbeUnknown, probestatus.SourceCondition), marked(mark.KindCondition, "game.io/idle", "Unknown"))},
		"no permission": {func(i *input) { i.change = noReports }, nil},
		"no permission, condition": {
			func(i *input) { i.pod.Condition(condition("True")); i.change = noReports }, conditionOf(v1alpha1.ProbeSucceeded, probestatus.SourceCondition),
		},
		"no permission, own mark": {
			func(i *input) { ownCondition(i); i.change = noReports }, both(conditionOf(v1alpha1.ProbeSucceeded, probestatus.SourceCondition), idleMark),
		},
		"no permission, label": {
			func(i *input) { ownLabel(i); i.change = noReports },
			both(func(r *probestatus.Row) { r.State, r.Source = v1alpha1.ProbeFailed, probestatus.SourceLabels }, noMark),
		},
		"no permission, no marks": {
			func(i *input) { i.marker = unconditional(); i.change = noReports },
			problem("StateNotVisible", "only the report has the state, and the report could not be read"),
		},
		"foreign condition": {func(i *input) { i.pod.Condition(condition("True")); withReports()(i) }, nil},
		"marks until the report": {
			func(i *input) { ownCondition(i); withReports()(i) }, both(conditionOf(v1alpha1.ProbeSucceeded, probestatus.SourceCondition), idleMark),
		},
		"report before marks": {ownLabel, both(reported, noMark)},
		"guarded": {func(i *input) {
			i.pod.Label(builders.GuardLabel, "update")
			i.change = func(in *probestatus.Input) {
				in.Pods[0].CreationTimestamp = metav1.Unix(500, 0)
				in.Budgets = []*policyv1.PodDisruptionBudget{builders.Guard("ns", "busy", false, "update"), builders.Guard("a", "all", false, "update")}
			}
		}, both(reported, func(r *probestatus.Row) { r.Guard = &probestatus.Guard{Name: "busy", Since: metav1.Unix(500, 0)} })},
		"guarded by a mark": {func(i *input) {
			ownLabel(i)
			i.change = func(in *probestatus.Input) {
				budget := builders.Guard("ns", "busy", false, "no")
				budget.Spec.Selector.MatchExpressions[0].Key = "healthy"
				in.Budgets = []*policyv1.PodDisruptionBudget{budget}
			}
		}, both(reported, noMark, func(r *probestatus.Row) { r.Guard = &probestatus.Guard{Name: "busy", Since: changed} })},
		"container missing": {func(i *input) {
			i.marker = builders.Marker("ns", "game").Probe(builders.Probe("idle").Container("web"))
		}, both(problem("ContainerNotFound", `container "web" not found`), func(r *probestatus.Row) { r.Container = "web" })},
		"pod unbound": {
			func(i *input) { i.pod.Node("") }, both(problem("PodNotBound", "pod is not bound to a node"), func(r *probestatus.Row) { r.Node = "" }),
		},
		"pod terminating": {
			func(i *input) { ownCondition(i); i.pod.Terminating() },
			both(conditionOf(v1alpha1.ProbeSucceeded, probestatus.SourceCondition), idleMark, problem("PodEnding", "pod is terminating")),
		},
		"no NodePodProbe": {
			func(i *input) { i.change = func(in *probestatus.Input) { delete(in.Plans, "n1") } },
			both(reported, problem("NoPlan", "node n1 has no NodePodProbe")),
		},
		"not planned": {
			func(i *input) { i.change = func(in *probestatus.Input) { in.Plans["n1"].Spec.PodProbes = nil } },
			both(reported, problem("NotPlanned", "the node's plan does not have the probe")),
		},
		"not planned, states dropped": {func(i *input) {
			ownCondition(i)
			i.change = func(in *probestatus.Input) { in.Plans["n1"].Spec.PodProbes, in.Reports = nil, nil }
		}, both(conditionOf(v1alpha1.ProbeSucceeded, probestatus.SourceCondition), idleMark, problem("NotPlanned", "the node's plan does not have the probe"))},
		"error": {withError("CannotRun", "no such file"), both(reported, problem("CannotRun", "cannot be run: no such file"))},
		"value refused": {func(i *input) {
			i.marker = builders.Marker("ns", "game").Probe(builders.Probe("idle").LabelFrom(
				v1alpha1.ProbeFailed, v1alpha1.ValueSource{Key: "map", AllowedValues: []string{"dust"}},
			))
		}, both(reported, func(r *probestatus.Row) {
			r.Refused = []string{`label map is not set: NotAllowed: "no match" is not one of the allowed values`}
		})},
		"virtual node": {
			func(i *input) { i.pod.Condition(condition("False")); i.change = virtual }, conditionOf(v1alpha1.ProbeFailed, probestatus.SourceProvider),
		},
		"virtual node, no result": {func(i *input) { i.change = virtual }, nil},
		"virtual node, no condition": {
			func(i *input) { i.marker = unconditional(); i.change = virtual }, problem(
				"ConditionTypeMissing", "podConditionType is required for pods on virtual nodes",
			),
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInput()
			test.edit(&i)
			got := probestatus.List(i.build(t))
			expect.Equal(t, "rows", []probestatus.Row{row(test.want)}, got.Rows)
		})
	}
}

func unconditional() *builders.MarkerBuilder {
	return builders.Marker("ns", "game").Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "a", "b"))
}

func ownCondition(i *input) {
	i.pod.Condition(condition("True")).ManagedFields(v1alpha1.FieldManager, "status", idle)
}

func ownLabel(i *input) {
	i.pod.Label("healthy", "no").ManagedFields(v1alpha1.FieldManager, "status", healthy)
}

func virtual(in *probestatus.Input) {
	in.Nodes["n1"].Labels = map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet}
	delete(in.Plans, "n1")
}

func inStatus(i *input) {
	i.change = func(in *probestatus.Input) {
		npp := in.Plans["n1"]
		npp.Status = v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
			Namespace: "ns", Name: "game-0", UID: "uid-game-0",
			ProbeStates: []v1alpha1.ContainerProbeState{state("game#idle", v1alpha1.ProbeFailed)},
		}}}
		in.Reports = nil
	}
}

func withReports(reports ...*seamarkv1alpha1.ProbeReport) func(*input) {
	return func(i *input) { i.change = func(in *probestatus.Input) { in.Reports["n1"] = reports } }
}

func withState(markerPlan string) func(*input) {
	return func(i *input) {
		i.change = func(in *probestatus.Input) { in.Reports["n1"][0].Pods[0].Probes[0].Plan = markerPlan }
	}
}

func withError(reason v1alpha1.ProbeErrorReason, message string) func(*input) {
	return func(i *input) {
		i.change = func(in *probestatus.Input) {
			in.Reports["n1"][0].Pods[0].Errors = []v1alpha1.ContainerProbeError{{Name: "game#idle", Reason: reason, Message: message}}
		}
	}
}

// What may pass by itself is no problem yet, and the states say when it becomes one.
func TestWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		now  time.Duration
		want func(*probestatus.Row)
		// again is when the row changes.
		again time.Duration
	}{
		"in time": {29 * time.Second, reported, diagnosis.Settle},
		"late": {
			diagnosis.Settle, both(reported, problem("PlanNotRunning", "the node's agent runs generation 3 of the plan, which has generation 4 now")), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInput()
			i.change = func(in *probestatus.Input) {
				in.Plans["n1"].Generation, in.Plans["n1"].CreationTimestamp, in.Now = 4, probed, probed.Add(test.now)
			}
			got := probestatus.List(i.build(t))
			want := probestatus.States{Rows: []probestatus.Row{row(test.want)}, Invalid: map[types.NamespacedName]error{}}
			if test.again > 0 {
				want.Waiting, want.RecheckAt = []types.NamespacedName{{Namespace: "ns", Name: "game-0"}}, probed.Add(test.again)
			}
			expect.Equal(t, "states", want, got)
		})
	}
}

// The rows have the order of the names and of the probes in a marker. A pod that no marker selects
// has no row, and a marker that has no effect is named.
func TestOrder(t *testing.T) {
	pod := func(namespace, name, app string) *corev1.Pod {
		return builders.Pod(namespace, name).Label("app", app).Node("n1").Build()
	}
	in := probestatus.Input{
		Pods: []*corev1.Pod{pod("ns", "b", "game"), pod("ns", "a", "game"), pod("ns", "c", "other"), pod("before", "d", "game")},
		Markers: []*v1alpha1.PodProbeMarker{
			builders.Marker("ns", "y").Probe(builders.Probe("q").Container("none")).Probe(builders.Probe("p")).Build(),
			builders.Marker("ns", "x").Probe(builders.Probe("z")).Probe(builders.Probe("r")).Build(),
			builders.Marker("before", "m").Probe(builders.Probe("p")).Build(),
			builders.Marker("ns", "broken").Probe(builders.Probe("a#b")).Build(),
		},
		PlansUnread: true,
	}
	got := probestatus.List(in)
	var names []string
	for i := range got.Rows {
		names = append(names, got.Rows[i].Namespace+"/"+got.Rows[i].Pod+" "+got.Rows[i].Marker+"/"+got.Rows[i].Probe)
	}
	want := []string{"before/d m/p", "ns/a x/z", "ns/a x/r", "ns/a y/p", "ns/a y/q", "ns/b x/z", "ns/b x/r", "ns/b y/p", "ns/b y/q"}
	expect.Equal(t, "rows", want, names)
	if len(got.Invalid) != 1 || got.Invalid[types.NamespacedName{Namespace: "ns", Name: "broken"}] == nil {
		t.Errorf("invalid markers %v, want ns/broken", got.Invalid)
	}
}

func TestShown(t *testing.T) {
	for want, row := range map[string]probestatus.Row{
		"Failed":  {State: v1alpha1.ProbeFailed, Problem: &probestatus.Problem{Reason: diagnosis.StateNotVisible}},
		"-":       {Problem: &probestatus.Problem{Reason: diagnosis.StateNotVisible}},
		"Pending": {},
	} {
		expect.Equal(t, "Shown()", want, row.Shown())
	}
}

func TestStale(t *testing.T) {
	pod := builders.Pod("ns", "game").Node("node").Build()
	for name, test := range map[string]struct {
		changed any
		want    bool
	}{
		"the pod":               {builders.Pod("ns", "game").Build(), true},
		"another pod":           {builders.Pod("ns", "web").Node("node").Build(), false},
		"namesake elsewhere":    {builders.Pod("other", "game").Build(), false},
		"marker":                {builders.Marker("ns", "marker").Build(), true},
		"marker elsewhere":      {builders.Marker("other", "marker").Build(), false},
		"node":                  {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, true},
		"plan":                  {&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, true},
		"plan of another node":  {&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, false},
		"report":                {&seamarkv1alpha1.ProbeReport{NodeName: "node"}, true},
		"report of other nodes": {&seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node"}, NodeName: "other"}, false},
		"unknown object":        {"node", false},
	} {
		stale := probestatus.NewChanges()
		if stale.Add(test.changed); stale.Affects(pod) != test.want {
			t.Errorf("%s has changed: stale %t, want %t", name, !test.want, test.want)
		}
	}
}

// A marker that does not count in a pod has a row for each of its probes.
func TestMarkerThatDoesNotCount(t *testing.T) {
	in := newInput().build(t)
	in.Markers[0].CreationTimestamp = metav1.Unix(2000, 0)
	for i := range plan.MaxMarkers {
		m := builders.Marker("ns", fmt.Sprintf("m%02d", i)).Probe(builders.Probe("p")).Build()
		m.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		in.Markers = append(in.Markers, m)
	}
	rows := probestatus.List(in).Rows
	i := slices.IndexFunc(rows, func(r probestatus.Row) bool { return r.Marker == "game" })
	if len(rows) != plan.MaxMarkers+1 || i < 0 {
		t.Fatalf("%d rows, that of the marker at %d; want %d", len(rows), i, plan.MaxMarkers+1)
	}
	want := row(problem("TooManyMarkers", "more than 64 markers select the pod, and only the oldest count: m00, m01, m02 and 61 more"))
	expect.Equal(t, "row", want, rows[i])
}
