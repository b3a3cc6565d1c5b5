// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestRemains(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:web":{},"f:stray":{}}}}`
	pod := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").ManagedFields("seamark", "status", entry)
	}
	other := builders.Marker("ns", "other").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "other")).Build()
	npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		UID: "uid-a", ProbeStates: []v1alpha1.ContainerProbeState{{Name: "other#p", State: v1alpha1.ProbeSucceeded}},
	}}}}
	onLabel := &blockage{namespace: "ns", marker: "web", pods: blockers{count: 1, example: "a", marks: []mark.Key{mark.Label("web")}}}
	none := &blockage{namespace: "ns", marker: "web"}
	cases := map[string]struct {
		pod    *corev1.Pod
		others []*v1alpha1.PodProbeMarker
		want   *blockage
	}{
		"mark is on the pod":                       {pod: pod().Label("web", "1").Build(), want: onLabel},
		"mark is removed":                          {pod: pod().Build(), want: none},
		"key without a marker":                     {pod: pod().Label("stray", "1").Build(), want: none},
		"mark and a key without a marker":          {pod: pod().Label("web", "1").Label("stray", "1").Build(), want: onLabel},
		"key of another marker with its value":     {pod: pod().Label("web", "other").Build(), others: []*v1alpha1.PodProbeMarker{other}, want: none},
		"key of another marker with the old value": {pod: pod().Label("web", "1").Build(), others: []*v1alpha1.PodProbeMarker{other}, want: onLabel},
		"probes handed to a provider": {
			pod:  pod().Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").Build(),
			want: &blockage{namespace: "ns", marker: "web", pods: blockers{count: 1, example: "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			deleted := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")).Deleting().Build()
			markers := plan.NewCompiler().All(append(tc.others, deleted))
			found := newRemains("ns", deleted)
			err := found.addPod(tc.pod, func() (podview.Pod, error) {
				return podview.New(tc.pod, markers, podview.UnknownNode, mark.NodeReport{Plan: npp}, podview.Options{Defaults: plan.KubernetesDefaults()}), nil
			}, "")
			expect.NoError(t, err)
			expect.Equal(t, "remains", tc.want, found.blockages["web"], cmp.AllowUnexported(blockage{}, blockers{}))
			if left := found.blockages["web"].pods.count; len(found.objects) != left {
				t.Errorf("%d objects to clean, want %d", len(found.objects), left)
			}
		})
	}
}

func TestBlockage(t *testing.T) {
	const denied = `pods "b" is forbidden: denied.`
	block := func(b blockage) blockage {
		b.namespace, b.marker = "ns", "web"
		return b
	}
	marks := []mark.Key{mark.Annotation("cost"), mark.ConditionType("x/idle"), mark.Label("busy"), mark.Label("idle")}
	pods := blockers{}.with("c", denied, nil).with("b", denied, marks).with("a", "", nil)
	const onPods = `MarksRemoved False WriteFailed: Pods still have marks of the marker (3, such as b). ` +
		`The last write to pod b failed: pods "b" is forbidden: denied.`
	cases := map[string]struct {
		blockage blockage
		want     string
	}{
		"pods, no write failed": {
			blockage: block(blockage{pods: blockers{}.with("b", "", nil).with("a", "", nil)}),
			want:     "MarksRemoved False Remaining: Pods still have marks of the marker (2, such as a).",
		},
		"failed writes": {blockage: block(blockage{pods: pods}), want: onPods},
		"plans": {
			blockage: block(blockage{nodes: blockers{}.with("n", "too large", nil)}),
			want: "MarksRemoved False WriteFailed: Plans of nodes still have probes of the marker (1, such as n). " +
				"The last write to the plan of node n failed: too large.",
		},
		"advice": {
			blockage: block(blockage{pods: pods, advise: true}),
			want: onPods + " No progress for more than 1m0s. Allow seamark-manager to patch pods/status, or remove the marks yourself: " +
				"kubectl annotate pod b -n ns cost-; " +
				`kubectl patch pod b -n ns --subresource=status -p '{"status":{"conditions":[{"type":"x/idle","$patch":"delete"}]}}'; ` +
				"kubectl label pod b -n ns busy- idle-. To delete the marker without waiting: " +
				`kubectl patch podprobemarker web -n ns --type=merge -p '{"metadata":{"finalizers":null}}'.`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "condition", tc.want, words(tc.blockage.finding().Condition))
		})
	}
}
