// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func status(probeReports bool, pods ...v1alpha1.PodProbeStatus) *v1alpha1.NodePodProbe {
	return &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{
		ObservedGeneration: 1, ProbeReports: probeReports, PodProbeStatuses: pods,
	}}
}

// planned returns the NodePodProbe of an agent that runs the generation of the plan, which
// has the pods.
func planned(running, generation int64, uids ...string) *v1alpha1.NodePodProbe {
	npp := status(true)
	npp.Generation, npp.Status.ObservedGeneration = generation, running
	for _, uid := range uids {
		npp.Spec.PodProbes = append(npp.Spec.PodProbes, v1alpha1.PodProbe{UID: uid})
	}
	return npp
}

func podStatus(uid string, states ...v1alpha1.ContainerProbeState) v1alpha1.PodProbeStatus {
	return v1alpha1.PodProbeStatus{Namespace: "ns", Name: "a", UID: uid, ProbeStates: states}
}

func slice(name string, pods ...seamarkv1alpha1.PodReport) *seamarkv1alpha1.ProbeReport {
	slice := &seamarkv1alpha1.ProbeReport{NodeName: "n", Pods: pods}
	slice.Name = name
	return slice
}

func podReport(name, uid string, states ...v1alpha1.ContainerProbeState) seamarkv1alpha1.PodReport {
	return seamarkv1alpha1.PodReport{Namespace: "ns", Name: name, UID: uid, Probes: states}
}

func named(name string, s v1alpha1.ProbeState) v1alpha1.ContainerProbeState {
	return v1alpha1.ContainerProbeState{Name: name, State: s}
}

// since returns a state of web#idle with the seconds of its last transition and its last result.
func since(s v1alpha1.ProbeState, transition, result int64) v1alpha1.ContainerProbeState {
	state := named("web#idle", s)
	state.LastTransitionTime, state.LastProbeTime = metav1.Unix(transition, 0), metav1.Unix(result, 0)
	return state
}

func TestNodeReport(t *testing.T) {
	const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	idle, busy := named("web#idle", succeeded), named("web#idle", failed)
	reported := func(state v1alpha1.ContainerProbeState) mark.PodReport {
		return mark.PodReport{Reported: true, States: mark.States{{Marker: "web", Probe: "idle"}: state}}
	}
	in := func(all ...*seamarkv1alpha1.ProbeReport) []*seamarkv1alpha1.ProbeReport { return all }
	cases := map[string]struct {
		npp    *v1alpha1.NodePodProbe
		slices []*seamarkv1alpha1.ProbeReport
		want   mark.PodReport
	}{
		"no report":       {},
		"no NodePodProbe": {slices: in(slice("n.0", podReport("a", "new", idle))), want: reported(idle)},
		"no states": {
			npp: status(true), slices: in(slice("n.0", podReport("a", "new"))), want: mark.PodReport{Reported: true, States: mark.States{}},
		},
		"not among the reported pods":    {npp: planned(1, 1, "old", "new"), slices: in(slice("n.0", podReport("a", "old", idle)))},
		"not planned":                    {npp: planned(2, 2, "old"), slices: in(slice("n.0", podReport("a", "old", idle)))},
		"not planned, entry not dropped": {npp: planned(2, 2, "old"), slices: in(slice("n.0", podReport("a", "new", idle))), want: reported(idle)},
		"matched by UID, not by name": {
			npp: status(true), slices: in(slice("n.0", podReport("a", "old", busy), podReport("a", "new", idle))), want: reported(idle),
		},
		"invalid probe name": {
			npp: status(true), slices: in(slice("n.0", podReport("a", "new", named("web", failed), idle))), want: reported(idle),
		},
		"in status":                     {npp: status(false, podStatus("old", busy), podStatus("new", idle)), want: reported(idle)},
		"in status, invalid probe name": {npp: status(false, podStatus("new", named("web", failed), idle)), want: reported(idle)},
		"not in the status": {
			npp: status(false, podStatus("old", busy)), slices: in(slice("n.0", podReport("a", "new", idle))), want: mark.PodReport{Reported: true},
		},
		"ProbeReport without effect": {
			npp:    status(false, podStatus("new", since(succeeded, 1, 1))),
			slices: in(slice("n.0", podReport("a", "new", since(failed, 2, 2)))), want: reported(since(succeeded, 1, 1)),
		},
		"status without effect": {
			npp: status(true, podStatus("new", since(succeeded, 2, 2))), slices: in(slice("n.0", podReport("a", "new", since(failed, 1, 1)))),
			want: reported(since(failed, 1, 1)),
		},
		"two entries": {
			slices: in(slice("n.0", podReport("a", "new", since(succeeded, 1, 9))), slice("n.1", podReport("a", "new", since(failed, 2, 2)))),
			want:   reported(since(failed, 2, 2)),
		},
		"two entries, other result": {
			slices: in(slice("n.0", podReport("a", "new", since(failed, 2, 4))), slice("n.1", podReport("a", "new", since(failed, 2, 3)))),
			want:   reported(since(failed, 2, 4)),
		},
		"two entries of the same time": {
			slices: in(slice("n.0", podReport("a", "new", idle)), slice("n.1", podReport("a", "new", busy))),
			want:   reported(idle),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				reported := mark.NodeReport{Plan: tc.npp, Slices: tc.slices}
				expect.Equal(t, "report", tc.want, reported.OfPod("new"))
				states := reported.States()["new"]
				if id := (identity.ID{Marker: "web", Probe: "idle"}); len(states) > 0 || len(tc.want.States) > 0 {
					expect.Equal(t, "states", tc.want.States[id], states[len(states)-1])
				}
				// The order of the ProbeReports does not matter.
				slices.Reverse(tc.slices)
			}
		})
	}
}

// TestAgentAndManagerAgree checks that an agent that starts and the manager take the same of two
// entries of a pod. The slices are listed in the order of their names.
func TestAgentAndManagerAgree(t *testing.T) {
	const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	planned := v1alpha1.PodProbe{Namespace: "ns", Name: "a", UID: "new", Probes: []v1alpha1.ContainerProbe{{Name: "web#idle", ContainerName: "main"}}}
	cases := map[string]struct {
		entries map[int]v1alpha1.ContainerProbeState
		want    v1alpha1.ProbeState
	}{
		"equal times":               {map[int]v1alpha1.ContainerProbeState{0: since(succeeded, 1, 1), 1: since(failed, 1, 1)}, succeeded},
		"equal times, two digits":   {map[int]v1alpha1.ContainerProbeState{2: since(succeeded, 1, 1), 10: since(failed, 1, 1)}, succeeded},
		"equal times, three digits": {map[int]v1alpha1.ContainerProbeState{99: since(succeeded, 1, 1), 100: since(failed, 1, 1)}, succeeded},
		"number too large":          {map[int]v1alpha1.ContainerProbeState{2: since(succeeded, 1, 1), 1000: since(failed, 1, 1)}, succeeded},
		"newer transition":          {map[int]v1alpha1.ContainerProbeState{2: since(failed, 1, 9), 10: since(succeeded, 2, 2)}, succeeded},
		"newer result":              {map[int]v1alpha1.ContainerProbeState{2: since(failed, 1, 1), 10: since(succeeded, 1, 2)}, succeeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stored []*seamarkv1alpha1.ProbeReport
			var listed []report.Slice
			names := map[string]int{}
			for number := range tc.entries {
				names[seamarkv1alpha1.SliceName("n", number)] = number
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				pod := podReport("a", "new", tc.entries[names[name]])
				stored, listed = append(stored, slice(name, pod)), append(listed, report.Slice{Number: names[name], Pods: []seamarkv1alpha1.PodReport{pod}})
			}
			var got []v1alpha1.ProbeState
			for _, state := range report.Restore(report.Plan{Pods: []v1alpha1.PodProbe{planned}}, report.Read(listed, nil)) {
				got = append(got, state.State)
			}
			for _, state := range (mark.NodeReport{Slices: stored}).OfPod("new").States {
				got = append(got, state.State)
			}
			expect.Equal(t, "states of the agent and the manager", []v1alpha1.ProbeState{tc.want, tc.want}, got)
		})
	}
}

func TestChanged(t *testing.T) {
	idle, busy := named("web#idle", v1alpha1.ProbeSucceeded), named("web#idle", v1alpha1.ProbeFailed)
	pod := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	reports := func(all ...seamarkv1alpha1.PodReport) []seamarkv1alpha1.PodReport { return all }
	cases := map[string]struct {
		before, after []seamarkv1alpha1.PodReport
		want          []types.NamespacedName
	}{
		"no change": {before: reports(podReport("a", "1", idle)), after: reports(podReport("a", "1", idle))},
		"new pod":   {after: reports(podReport("a", "1", idle)), want: []types.NamespacedName{pod("a")}},
		"no states": {after: reports(podReport("a", "1")), want: []types.NamespacedName{pod("a")}},
		"new state": {
			before: reports(podReport("a", "1", idle), podReport("b", "2", idle)),
			after:  reports(podReport("a", "1", idle), podReport("b", "2", busy)), want: []types.NamespacedName{pod("b")},
		},
		"removed pod": {before: reports(podReport("a", "1", idle)), want: []types.NamespacedName{pod("a")}},
		"recreated pod, listed once": {
			before: reports(podReport("a", "1", idle)), after: reports(podReport("a", "2", idle)),
			want: []types.NamespacedName{pod("a")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "changed", tc.want, mark.Changed(tc.before, tc.after))
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
		"same marker":         {"1", "1", true},
		"recreated marker":    {"2", "1", false},
		"agent of OpenKruise": {"1", "", true},
		"plan of OpenKruise":  {"", "1", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			probes := planOf(t, builders.Marker("ns", "web").Probe(builders.Probe("p").Condition("game.io/idle")).Build())
			probes[0].Plan.Plan = tc.planned
			state := named("web#p", v1alpha1.ProbeSucceeded)
			state.Plan = tc.reported
			reported := mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", podReport("a", "new", state))}}
			marks := mark.Desired(probes, reported.OfPod("new"), nil)
			expect.Equal(t, "condition set", tc.want, marks.Has(mark.ConditionType("game.io/idle")))
		})
	}
}

// TestCostOfFullNode checks that the other pods of a node allocate nothing when one is found.
func TestCostOfFullNode(t *testing.T) {
	idle := named("web#idle", v1alpha1.ProbeSucceeded)
	allocations := func(slices, pods int) float64 {
		reported := mark.NodeReport{Plan: status(true)}
		for i := range slices {
			slice := slice(fmt.Sprint("n.", i))
			for j := range pods {
				slice.Pods = append(slice.Pods, podReport("a", fmt.Sprint(i, "-", j), idle))
			}
			reported.Slices = append(reported.Slices, slice)
		}
		uid := types.UID(fmt.Sprint(slices-1, "-", pods-1))
		return testing.AllocsPerRun(100, func() {
			if !reported.OfPod(uid).Reported {
				t.Fatal("the pod is not found")
			}
		})
	}
	if alone, full := allocations(1, 1), allocations(14, 8); full > alone {
		t.Errorf("%v allocations for a pod of a full node, %v for the only one", full, alone)
	}
}

func TestProvided(t *testing.T) {
	const (
		whole = `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:message":{},"f:status":{},"f:type":{}}}}}`
		rest  = `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:type":{}}}}}`
	)
	is := func(status corev1.ConditionStatus) *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("idle", "old").
			Condition(corev1.PodCondition{Type: "game.io/idle", Status: status, Message: "said", LastTransitionTime: metav1.Unix(9, 0)})
	}
	idle := mark.ConditionType("game.io/idle")
	label := func(value string) mark.Marks { return mark.Marks{mark.Label("idle"): text(value)} }
	cases := map[string]struct {
		pod  *builders.PodBuilder
		want mark.Marks
	}{
		"no condition":       {pod: builders.Pod("ns", "a").Label("app", "game")},
		"True":               {pod: is(corev1.ConditionTrue), want: label("yes")},
		"False":              {pod: is(corev1.ConditionFalse), want: label("no")},
		"Unknown":            {pod: is(corev1.ConditionUnknown)},
		"nonstandard status": {pod: is("Maybe")},
		"provider has set the condition": {pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", rest), want: mark.Marks{
			mark.Label("idle"): text("yes"), idle: {},
		}},
		"condition without status": {pod: is("").ManagedFields("seamark", "status", rest)},
		"condition of an agent, not yet set by the provider": {
			pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", whole),
			want: mark.Marks{
				mark.Label("idle"): text("yes"),
				idle:               {Condition: mark.Condition{Status: corev1.ConditionTrue, Message: "said"}},
			},
		},
	}
	marker, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "idle", "yes").Label(v1alpha1.ProbeFailed, "idle", "no")).Build())
	expect.NoError(t, err)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod.Build()
			probes := plan.Pod(pod, []*plan.Marker{marker}, plan.KubernetesDefaults()).Probes
			report := mark.Provided(pod, probes)
			owned, err := mark.Owned(pod)
			expect.NoError(t, err)
			expect.Equal(t, "marks", tc.want, mark.Desired(probes, report, owned), cmpopts.EquateEmpty())
		})
	}
}

// failing returns entries of pods with errors, each written pod/marker#probe/message.
func failing(errs ...string) []seamarkv1alpha1.PodReport {
	var pods []seamarkv1alpha1.PodReport
	for _, e := range errs {
		parts := strings.Split(e, "/")
		pods = append(pods, seamarkv1alpha1.PodReport{
			Namespace: "ns", Name: parts[0], UID: "uid-" + parts[0],
			Errors: []v1alpha1.ContainerProbeError{{Name: parts[1], Reason: v1alpha1.ProbeCannotRun, Message: parts[2]}},
		})
	}
	return pods
}

func TestErrorsInForce(t *testing.T) {
	slice := func(name string, errs ...string) *seamarkv1alpha1.ProbeReport {
		s := &seamarkv1alpha1.ProbeReport{NodeName: "n", Pods: failing(errs...)}
		s.Name = name
		return s
	}
	odd := slice("n.0", "x/m#p/"+strings.Repeat("é", 300))
	odd.Pods[0].Errors[0].Reason = "Odd reason\n"
	cases := map[string]struct {
		report mark.NodeReport
		want   []v1alpha1.ContainerProbeError
	}{
		"none":             {report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "y/m#p/other")}}},
		"in a ProbeReport": {report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "x/m#p/no")}}, want: failing("x/m#p/no")[0].Errors},
		"states in status": {
			report: mark.NodeReport{Plan: status(false, podStatus("uid-x")), Slices: []*seamarkv1alpha1.ProbeReport{slice("n.0", "x/m#p/no")}},
		},
		"two entries": {
			report: mark.NodeReport{
				Slices: []*seamarkv1alpha1.ProbeReport{slice("n.1", "x/m#p/b"), slice("n.0", "x/m#p/a")},
			}, want: failing("x/m#p/a")[0].Errors,
		},
		"unknown reason and long message": {
			report: mark.NodeReport{Slices: []*seamarkv1alpha1.ProbeReport{odd}}, want: failing("x/m#p/" + strings.Repeat("é", 128))[0].Errors,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "errors", tc.want, tc.report.Errors("uid-x"))
		})
	}
	expect.Equal(t, "the cached report is modified", "Odd reason\n", odd.Pods[0].Errors[0].Reason)
}

func TestChangedErrors(t *testing.T) {
	cases := map[string]struct{ before, after, want []string }{
		"none":                 {},
		"new":                  {after: []string{"x/m#p/no"}, want: []string{"ns/m"}},
		"same":                 {before: []string{"x/m#p/no"}, after: []string{"x/m#p/no"}},
		"message":              {before: []string{"x/m#p/no"}, after: []string{"x/m#p/gone"}, want: []string{"ns/m"}},
		"one of two cleared":   {before: []string{"x/m#p/no", "x/n#p/no"}, after: []string{"x/n#p/no"}, want: []string{"ns/m"}},
		"all cleared":          {before: []string{"x/m#p/no", "y/n#p/no"}, want: []string{"ns/m", "ns/n"}},
		"other pod":            {before: []string{"x/m#p/no"}, after: []string{"y/m#p/no"}, want: []string{"ns/m"}},
		"name is not of probe": {after: []string{"x/m/no"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			merge := func(errs []string) []seamarkv1alpha1.PodReport {
				var pods []seamarkv1alpha1.PodReport
				for _, pod := range failing(errs...) {
					if i := slices.IndexFunc(pods, func(p seamarkv1alpha1.PodReport) bool { return p.UID == pod.UID }); i >= 0 {
						pods[i].Errors = append(pods[i].Errors, pod.Errors...)
					} else {
						pods = append(pods, pod)
					}
				}
				return pods
			}
			var got []string
			for _, marker := range mark.ChangedErrors(merge(tc.before), merge(tc.after)) {
				got = append(got, marker.String())
			}
			expect.Equal(t, "changed markers", tc.want, got)
		})
	}
}
