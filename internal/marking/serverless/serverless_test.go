// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func compileAll(t *testing.T, markers ...*builders.MarkerBuilder) []*plan.Marker {
	t.Helper()
	var all []*plan.Marker
	for _, marker := range markers {
		compiled, err := plan.Compile(marker.Build())
		expect.NoError(t, err)
		all = append(all, compiled)
	}
	return all
}

func game() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }

func idle() *builders.ProbeBuilder {
	return builders.Probe("Idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")
}

func TestAnnotations(t *testing.T) {
	const one = `{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/idle"}`
	port := func(name string) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(name)}}
	}
	cases := map[string]struct {
		pod      *builders.PodBuilder
		markers  []*builders.MarkerBuilder
		want     serverless.Annotations
		problems []plan.Problem
	}{
		"pod not selected": {
			pod:     builders.Pod("ns", "a").Label("app", "db"),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").Probe(idle())},
		},
		"unbound and uninitialized pod, policy omitted": {
			pod:     game().Node("").Initialized(corev1.ConditionFalse),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").Probe(idle())},
			want:    serverless.Annotations{Probes: "[" + one + "]", Markers: "web"},
		},
		"no condition type": {
			pod: game(),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").
				Probe(builders.Probe("bare").Label(v1alpha1.ProbeSucceeded, "k", "v")).Probe(idle())},
			want: serverless.Annotations{Probes: "[" + one + "]", Markers: "web"},
			problems: []plan.Problem{{
				ID: identity.ID{Marker: "web", Probe: "bare"}, Namespace: "ns", Pod: "a", Container: "main", Reason: serverless.ConditionTypeMissing,
			}},
		},
		"milliseconds": {
			pod: game(),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").
				Probe(builders.Probe("fast").Condition("game.io/fast").Milliseconds(500, 500)).Probe(idle())},
			want: serverless.Annotations{Probes: "[" + one + "]", Markers: "web"},
			problems: []plan.Problem{{
				ID: identity.ID{Marker: "web", Probe: "fast"}, Namespace: "ns", Pod: "a", Container: "main", Reason: serverless.MillisecondsUnsupported,
			}},
		},
		"startup policy": {
			pod: game(),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").
				Probe(builders.Probe("late").Condition("game.io/late").WaitForStarted()).Probe(idle())},
			want: serverless.Annotations{Probes: "[" + one + "]", Markers: "web"},
			problems: []plan.Problem{{
				ID: identity.ID{Marker: "web", Probe: "late"}, Namespace: "ns", Pod: "a", Container: "main", Reason: serverless.StartupPolicyUnsupported,
			}},
		},
		"repeated condition type": {
			pod: game(),
			markers: []*builders.MarkerBuilder{
				builders.Marker("ns", "web").Probe(builders.Probe("later").Condition("game.io/idle")),
				builders.Marker("ns", "api").Probe(idle()),
			},
			want: serverless.Annotations{Probes: "[" + one + "]", Markers: "api"},
			problems: []plan.Problem{{
				ID: identity.ID{Marker: "web", Probe: "later"}, Namespace: "ns", Pod: "a", Container: "main", Reason: serverless.ConditionTypeTaken,
			}},
		},
		"missing container": {
			pod:     game(),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").Probe(idle()).Probe(builders.Probe("p").Container("none").Condition("game.io/p"))},
			want:    serverless.Annotations{Probes: "[" + one + "]", Markers: "web"},
			problems: []plan.Problem{{
				ID: identity.ID{Marker: "web", Probe: "p"}, Namespace: "ns", Pod: "a", Container: "none", Reason: plan.ContainerNotFound,
			}},
		},
		"sidecar with port name and unset times": {
			pod: game().InitContainer("proxy", true, corev1.ContainerPort{Name: "admin", ContainerPort: 9}),
			markers: []*builders.MarkerBuilder{builders.Marker("ns", "web").Probe(builders.Probe("p").Container("proxy").
				Condition("game.io/p").Handler(port("admin")).Times(5, 0))},
			want: serverless.Annotations{
				Probes:  `[{"name":"p","containerName":"proxy","probe":{"tcpSocket":{"port":"admin"},"periodSeconds":5},"podConditionType":"game.io/p"}]`,
				Markers: "web",
			},
		},
		"markers ordered by name": {
			pod: game(),
			markers: []*builders.MarkerBuilder{
				builders.Marker("ns", "b").Probe(builders.Probe("Idle").Condition("game.io/b")),
				builders.Marker("ns", "a").Probe(idle()).Probe(builders.Probe("z").Condition("game.io/z")),
				builders.Marker("other", "c").Probe(builders.Probe("Idle").Condition("game.io/c")),
				builders.Marker("ns", "d").Deleting().Probe(builders.Probe("Idle").Condition("game.io/d")),
			},
			want: serverless.Annotations{
				Probes: "[" + one + `,{"name":"z","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/z"}` +
					`,{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/b"}]`,
				Markers: "a,b",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			markers := compileAll(t, tc.markers...)
			for range 2 {
				compiled := serverless.Compile(tc.pod.Build(), markers, plan.KubernetesDefaults())
				got, err := serverless.Encode(compiled.Probes)
				expect.NoError(t, err)
				expect.Equal(t, "annotations", tc.want, got)
				expect.Equal(t, "problems", tc.problems, compiled.Problems)
				var decoded []v1alpha1.PodContainerProbe
				if got.Probes != "" && (json.Unmarshal([]byte(got.Probes), &decoded) != nil || len(decoded) != len(compiled.Probes)) {
					t.Errorf("%s is not an array of %d probes", got.Probes, len(compiled.Probes))
				}
				slices.Reverse(markers)
			}
		})
	}
}

func TestEncodeDoesNotModifyTheMarker(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(idle()).Build()
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	handed := serverless.Compile(game().Build(), []*plan.Marker{compiled}, plan.KubernetesDefaults())
	if _, err := serverless.Encode(handed.Probes); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, "policy removed from the marker", 1, len(marker.Spec.Probes[0].MarkerPolicy))
}

func TestOfAndNames(t *testing.T) {
	pod := game().Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "a,web").Build()
	annotations := serverless.AnnotationsOf(pod)
	expect.Equal(t, "annotations", serverless.Annotations{Probes: "[]", Markers: "a,web"}, annotations)
	if diff := cmp.Diff([]string{"a", "web"}, annotations.Names()); diff != "" || (serverless.Annotations{}).Names() != nil {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	expect.Equal(t, "Size()", len("kruise.io/podprobe[]kruise.io/podprobemarker-lista,web"), annotations.Size())
	expect.Equal(t, "Size() without annotations", 0, (serverless.Annotations{}).Size())
}

func TestMayRunOn(t *testing.T) {
	const cloud = "virtual-kubelet.io/provider"
	virtual := []corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "vk", Labels: map[string]string{"type": "virtual-kubelet", "zone": "a"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: cloud, Value: "x", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute},
			{Key: "avoid", Effect: corev1.TaintEffectPreferNoSchedule},
		}},
	}}
	tolerates := corev1.Toleration{Key: cloud, Operator: corev1.TolerationOpExists}
	spec := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		s := corev1.PodSpec{Tolerations: []corev1.Toleration{tolerates}}
		change(&s)
		return s
	}
	zones := func(values ...string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: values},
			}}},
		}}}
	}
	cases := map[string]struct {
		spec  corev1.PodSpec
		nodes []corev1.Node
		want  bool
	}{
		"tolerates":             {spec(func(*corev1.PodSpec) {}), virtual, true},
		"does not tolerate":     {corev1.PodSpec{}, virtual, false},
		"no virtual nodes":      {spec(func(*corev1.PodSpec) {}), nil, false},
		"node with kubelet":     {spec(func(*corev1.PodSpec) {}), []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}, false},
		"bound to virtual node": {corev1.PodSpec{NodeName: "vk"}, virtual, true},
		"bound to other node":   {spec(func(s *corev1.PodSpec) { s.NodeName = "n" }), virtual, false},
		"matching selector":     {spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"type": "virtual-kubelet"} }), virtual, true},
		"other selector":        {spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"zone": "b"} }), virtual, false},
		"matching affinity":     {spec(func(s *corev1.PodSpec) { s.Affinity = zones("a", "b") }), virtual, true},
		"other affinity":        {spec(func(s *corev1.PodSpec) { s.Affinity = zones("b") }), virtual, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "MayRunOn", tc.want, serverless.MayRunOn(&corev1.Pod{Spec: tc.spec}, tc.nodes))
		})
	}
}
