// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func compile(t testing.TB, markers ...*v1alpha1.PodProbeMarker) []*plan.Marker {
	t.Helper()
	compiled := make([]*plan.Marker, 0, len(markers))
	for _, m := range markers {
		c, err := plan.Compile(m)
		expect.NoErrorf(t, err, "compile %s", m.Name)
		compiled = append(compiled, c)
	}
	return compiled
}

// planned returns the plan of a probe of the builders.
func planned(name string) v1alpha1.ContainerProbe {
	return v1alpha1.ContainerProbe{
		Name: name, ContainerName: "main",
		Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/probe"}}},
			PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		}},
	}
}

func podProbe(name string, probes ...v1alpha1.ContainerProbe) v1alpha1.PodProbe {
	return v1alpha1.PodProbe{Namespace: "ns", Name: name, UID: "uid-" + name, Probes: probes}
}

// plannedTCP returns the plan of a probe of the builders with the handler tcp.
func plannedTCP(name string) v1alpha1.ContainerProbe {
	probe := planned(name)
	probe.Probe.Exec, probe.Probe.TCPSocket = nil, tcp().TCPSocket
	return probe
}

func tcp() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}
}

// static returns the plan of the mirror pod of a static pod.
func static(pod v1alpha1.PodProbe, runtimeUID string) v1alpha1.PodProbe {
	pod.RuntimeUID = runtimeUID
	return pod
}

func TestNode(t *testing.T) {
	web := builders.Marker("ns", "web").Probe(builders.Probe("idle")).Probe(builders.Probe("busy")).Build()
	mixed := builders.Marker("ns", "mixed").Probe(builders.Probe("exec")).Probe(builders.Probe("tcp").Handler(tcp())).Build()
	game := func(name string) *builders.PodBuilder {
		return builders.Pod("ns", name).Label("app", "game")
	}
	cases := map[string]struct {
		pods    []*corev1.Pod
		markers []*v1alpha1.PodProbeMarker
		want    []v1alpha1.PodProbe
	}{
		"no pods": {},
		"pods ordered by name, probes in marker order": {
			pods:    []*corev1.Pod{game("b").Build(), game("a").Build()},
			markers: []*v1alpha1.PodProbeMarker{web},
			want: []v1alpha1.PodProbe{
				podProbe("a", planned("web#idle"), planned("web#busy")),
				podProbe("b", planned("web#idle"), planned("web#busy")),
			},
		},
		"markers ordered by name": {
			pods: []*corev1.Pod{game("a").Build()},
			markers: []*v1alpha1.PodProbeMarker{
				builders.Marker("ns", "z").Probe(builders.Probe("p")).Build(),
				builders.Marker("ns", "a").Probe(builders.Probe("p")).Build(),
			},
			want: []v1alpha1.PodProbe{podProbe("a", planned("a#p"), planned("z#p"))},
		},
		"static pods": {
			pods: []*corev1.Pod{
				game("a").Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").Build(),
				game("not-mirrored").Annotation("kubernetes.io/config.hash", "h").Build(),
			},
			markers: []*v1alpha1.PodProbeMarker{web},
			want: []v1alpha1.PodProbe{
				static(podProbe("a", planned("web#idle"), planned("web#busy")), "h"),
				podProbe("not-mirrored", planned("web#idle"), planned("web#busy")),
			},
		},
		"marker of another namespace": {
			pods:    []*corev1.Pod{game("a").Build()},
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("other", "web").Probe(builders.Probe("p")).Build()},
		},
		"marker being deleted": {
			pods:    []*corev1.Pod{game("a").Build()},
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(builders.Probe("p")).Deleting().Build()},
		},
		"pods that are not selected or not eligible": {
			pods: []*corev1.Pod{
				builders.Pod("ns", "other").Label("app", "db").Build(),
				builders.Pod("ns", "bare").Build(),
				game("unbound").Node("").Build(),
				game("succeeded").Phase(corev1.PodSucceeded).Build(),
				game("failed").Phase(corev1.PodFailed).Build(),
				game("terminating").Terminating().Build(),
				game("waiting").Initialized(corev1.ConditionFalse).Build(),
			},
			markers: []*v1alpha1.PodProbeMarker{web},
		},
		"pod that is initialized again": {
			pods:    []*corev1.Pod{game("a").Initialized(corev1.ConditionFalse).Ran().Build()},
			markers: []*v1alpha1.PodProbeMarker{web},
			want:    []v1alpha1.PodProbe{podProbe("a", planned("web#idle"), planned("web#busy"))},
		},
		"network probes": {
			pods:    []*corev1.Pod{game("a").Build()},
			markers: []*v1alpha1.PodProbeMarker{mixed},
			want: []v1alpha1.PodProbe{{
				Namespace: "ns", Name: "a", UID: "uid-a", IP: "10.0.0.1",
				Probes: []v1alpha1.ContainerProbe{planned("mixed#exec"), plannedTCP("mixed#tcp")},
			}},
		},
		"exec probes of a pod without an address": {
			pods:    []*corev1.Pod{game("a").IP("").Phase(corev1.PodPending).Build()},
			markers: []*v1alpha1.PodProbeMarker{web},
			want:    []v1alpha1.PodProbe{podProbe("a", planned("web#idle"), planned("web#busy"))},
		},
		"network probes of a pod without an address": {
			pods:    []*corev1.Pod{game("a").IP("").Phase(corev1.PodPending).Build()},
			markers: []*v1alpha1.PodProbeMarker{mixed},
		},
		"network probes of a pod that lost its address": {
			pods:    []*corev1.Pod{game("a").IP("").Ran().Build()},
			markers: []*v1alpha1.PodProbeMarker{mixed},
			want:    []v1alpha1.PodProbe{podProbe("a", planned("mixed#exec"), plannedTCP("mixed#tcp"))},
		},
		"ending pod and its successor": {
			pods:    []*corev1.Pod{game("a").UID("old").Terminating().Build(), game("a").UID("new").Build()},
			markers: []*v1alpha1.PodProbeMarker{builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()},
			want: []v1alpha1.PodProbe{{
				Namespace: "ns", Name: "a", UID: "new",
				Probes: []v1alpha1.ContainerProbe{planned("web#p")},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan.Node(tc.pods, compile(t, tc.markers...), plan.KubernetesDefaults())
			expect.Equal(t, "plan", tc.want, got.PodProbes, ignorePlan())
		})
	}
}

func TestPodProblems(t *testing.T) {
	pod := builders.Pod("ns", "a").Label("app", "game").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 8080}).
		InitContainer("setup", false).
		InitContainer("proxy", true, corev1.ContainerPort{Name: "admin", ContainerPort: 9000}).
		Build()
	httpGet := func(port intstr.IntOrString) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port}}
	}
	problem := func(reason plan.Reason, container, port string) []plan.Problem {
		return []plan.Problem{{
			ID: identity.ID{Marker: "web", Probe: "p"}, Namespace: "ns", Pod: "a",
			Container: container, Port: port, Reason: reason,
		}}
	}
	cases := map[string]struct {
		probe *builders.ProbeBuilder
		want  []plan.Problem
	}{
		"container":                            {probe: builders.Probe("p").Container("web")},
		"restartable init container":           {probe: builders.Probe("p").Container("proxy")},
		"port of a restartable init container": {probe: builders.Probe("p").Container("proxy").Handler(httpGet(intstr.FromString("admin")))},
		"init container":                       {probe: builders.Probe("p").Container("setup"), want: problem(plan.ContainerNotFound, "setup", "")},
		"missing container":                    {probe: builders.Probe("p").Container("db"), want: problem(plan.ContainerNotFound, "db", "")},
		"port of another container": {
			probe: builders.Probe("p").Container("main").Handler(httpGet(intstr.FromString("http"))), want: problem(plan.PortNotFound, "main", "http"),
		},
		"invalid port number": {
			probe: builders.Probe("p").Handler(httpGet(intstr.FromInt32(70000))), want: problem(plan.PortNotFound, "main", "70000"),
		},
		"no handler":       {probe: builders.Probe("p").Handler(corev1.ProbeHandler{}), want: problem(plan.HandlerInvalid, "main", "")},
		"timeout too long": {probe: builders.Probe("p").Times(10, 301), want: problem(plan.TimeoutTooLong, "main", "")},
		"longest timeout":  {probe: builders.Probe("p").Times(10, 300)},
		"gRPC without port": {
			probe: builders.Probe("p").Handler(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{}}), want: problem(plan.PortNotFound, "main", "0"),
		},
		"missing TCP port": {
			probe: builders.Probe("p").Container("web").Handler(corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("ssh")},
			}), want: problem(plan.PortNotFound, "web", "ssh"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			markers := compile(t, builders.Marker("ns", "web").Probe(tc.probe).Build())
			got := plan.Pod(pod, markers, plan.KubernetesDefaults())
			expect.Equal(t, "problems", tc.want, got.Problems)
			expect.Equal(t, "probes planned", 1-len(tc.want), len(got.Probes))
		})
	}
}

func TestCompileRejects(t *testing.T) {
	valid := func() *v1alpha1.PodProbeMarker {
		return builders.Marker("ns", "web").Probe(builders.Probe("p")).Build()
	}
	cases := map[string]func(*v1alpha1.PodProbeMarker){
		"no selector":    func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = nil },
		"empty selector": func(m *v1alpha1.PodProbeMarker) { m.Spec.Selector = &metav1.LabelSelector{} },
		"invalid operator": func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
		},
		"empty name":    func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].Name = "" },
		"# in a name":   func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].Name = "a#b" },
		"repeated name": func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = append(m.Spec.Probes, m.Spec.Probes[0]) },
		"label of matchLabels": func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes[0].MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeFailed, Labels: map[string]string{"app": "x"}}}
		},
		"label of matchExpressions": func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "idle", Operator: metav1.LabelSelectorOpDoesNotExist}}
			m.Spec.Probes[0].MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{{State: v1alpha1.ProbeSucceeded, Labels: map[string]string{"idle": "true"}}}
		},
		"condition type of Kubernetes": func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes[0].PodConditionType = "Ready" },
	}
	compile(t, valid())
	for name, invalidate := range cases {
		t.Run(name, func(t *testing.T) {
			m := valid()
			invalidate(m)
			if _, err := plan.Compile(m); err == nil {
				t.Error("compiled, want an error")
			}
		})
	}
}

func TestSamePlan(t *testing.T) {
	base := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	cases := map[string]struct {
		after *corev1.Pod
		same  bool
	}{
		"unchanged":         {after: base().Build(), same: true},
		"other condition":   {after: base().Condition(corev1.PodCondition{Type: "Ready"}).Build(), same: true},
		"annotation":        {after: base().Annotation("a", "b").Build(), same: true},
		"other label":       {after: base().Label("b", "c").Build(), same: true},
		"selected label":    {after: base().Label("app", "db").Build()},
		"IP":                {after: base().IP("10.0.0.2").Build()},
		"no IP":             {after: base().IP("").Ran().Build()},
		"phase":             {after: base().Phase(corev1.PodFailed).Build()},
		"termination":       {after: base().Terminating().Build()},
		"initialization":    {after: base().Initialized(corev1.ConditionFalse).Build()},
		"initialized again": {after: base().Initialized(corev1.ConditionFalse).Ran().Build(), same: true},
		"UID":               {after: base().UID("other").Build()},
		"static pod": {
			after: base().Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").Build(),
		},
	}
	marker := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	for deletion, markers := range map[string][]*plan.Marker{
		"": compile(t, marker().Build()), ", marker is being deleted": compile(t, marker().Deleting().Build()),
	} {
		for name, tc := range cases {
			t.Run(name+deletion, func(t *testing.T) {
				got := plan.SamePlan(base().Build(), tc.after, func() []*plan.Marker { return markers })
				expect.Equal(t, "SamePlan", tc.same, got)
			})
		}
	}
}
