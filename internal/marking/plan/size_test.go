// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/floor"
)

func TestOnlyTheOldestMarkersCount(t *testing.T) {
	age := func(name string, created int64) *v1alpha1.PodProbeMarker {
		m := builders.Marker("ns", name).Probe(builders.Probe("p")).Build()
		if created > 0 {
			m.CreationTimestamp = metav1.Unix(created, 0)
		}
		return m
	}
	// many returns the markers m00, m01 and so on, each created a second after the last one.
	many := func(n int) []*v1alpha1.PodProbeMarker {
		var all []*v1alpha1.PodProbeMarker
		for i := range n {
			all = append(all, age(fmt.Sprintf("m%02d", i), int64(1000+i)))
		}
		return all
	}
	unsaved := func(n int) []*v1alpha1.PodProbeMarker {
		all := many(n)
		for _, m := range all {
			m.CreationTimestamp = metav1.Time{}
		}
		return all
	}
	deleting, elsewhere := age("a", 1), builders.Marker("ns", "b").Selector("app", "db").Probe(builders.Probe("p")).Build()
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(2000, 0)}
	const oldest = "m00, m01, m02 and 61 more"
	cases := map[string]struct {
		markers []*v1alpha1.PodProbeMarker
		excess  []string
		counted string
	}{
		"at the limit":                         {markers: many(64)},
		"one more":                             {markers: many(65), excess: []string{"m64"}, counted: oldest},
		"not the first by name":                {markers: append(many(64), age("a", 5000)), excess: []string{"a"}, counted: oldest},
		"an older one":                         {markers: append(many(64), age("z", 1)), excess: []string{"m63"}, counted: "z, m00, m01 and 61 more"},
		"equal age: by name":                   {markers: append(many(64), age("m63b", 1063)), excess: []string{"m63b"}, counted: oldest},
		"several":                              {markers: append(many(66), age("a", 5000)), excess: []string{"a", "m64", "m65"}, counted: oldest},
		"no ages: by name":                     {markers: unsaved(65), excess: []string{"m64"}, counted: oldest},
		"without an age is the newest":         {markers: append(many(64), age("a", 0)), excess: []string{"a"}, counted: oldest},
		"deleted and others that do not match": {markers: append(many(64), deleting, elsewhere)},
	}
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			markers := compile(t, tc.markers...)
			slices.Reverse(markers)
			got := plan.Pod(pod, markers, plan.KubernetesDefaults())
			var excess []string
			for _, m := range got.Excess.Markers {
				excess = append(excess, m.Name)
			}
			if diff := cmp.Diff(tc.excess, excess); diff != "" || got.Excess.Counted != tc.counted || len(got.Probes) != 64 {
				t.Errorf("%d probes, %q count, want 64 and %q; markers that do not (-want +got):\n%s", len(got.Probes), got.Excess.Counted, tc.counted, diff)
			}
			if !slices.IsSortedFunc(got.Probes, func(a, b plan.PlannedProbe) int { return strings.Compare(a.ID.Marker, b.ID.Marker) }) {
				t.Error("the probes are not ordered by the name of the marker")
			}
			if node := plan.Node([]*corev1.Pod{pod}, markers, plan.KubernetesDefaults()); len(node.PodProbes[0].Probes) != len(got.Probes) {
				t.Errorf("the plan of the node has %d probes, that of the pod %d", len(node.PodProbes[0].Probes), len(got.Probes))
			}
			for i, p := range got.Unplanned(pod) {
				want := plan.Problem{
					ID: identity.ID{Marker: tc.excess[i], Probe: "p"}, Namespace: "ns", Pod: "a", Container: "main",
					Counted: tc.counted, Reason: plan.TooManyMarkers,
				}
				expect.Equal(t, fmt.Sprintf("problem %d", i), want, p)
			}
		})
	}
}

// The largest slice takes a third of what etcd stores per object. Long commands leave out probes of
// their own pod only.
func TestLargePodPlans(t *testing.T) {
	long := func(name string) *builders.ProbeBuilder {
		return builders.Probe(name).Handler(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{strings.Repeat("x", 20<<10)}}})
	}
	markers := compile(t,
		builders.Marker("ns", "a").Selector("app", "large").Probe(long("1")).Probe(long("2")).Build(),
		builders.Marker("ns", "b").Selector("app", "large").Probe(long("3")).Probe(long("4")).Probe(builders.Probe("small")).Build())
	var pods []*corev1.Pod
	for i := range slicing.MaxPods {
		pods = append(pods, builders.Pod("ns", fmt.Sprint("pod-", i)).Label("app", "large").Build())
	}
	planned := plan.Pod(pods[0], markers, plan.KubernetesDefaults())
	var ran, full []string
	for _, p := range planned.Probes {
		ran = append(ran, p.ID.String())
	}
	for _, p := range planned.Problems {
		full = append(full, p.ID.String()+" "+string(p.Reason))
	}
	expect.Equal(t, "probes and problems", [][]string{{"a#1", "a#2", "b#3", "b#small"}, {"b#4 PodPlanFull"}}, [][]string{ran, full})
	spec := plan.Node(pods, markers, plan.KubernetesDefaults())
	slice := slicing.Place(spec.PodProbes, nil, "n")[0]
	encoded, err := json.Marshal(slice.Pods)
	if size := len(encoded); err != nil || len(slice.Pods) != slicing.MaxPods || size > 512<<10+4096 {
		t.Errorf("a slice with %d pods takes %d bytes", len(slice.Pods), size)
	}
}

// BenchmarkNode compiles and fits the plan of a node with 30 pods and 10 markers; one selects each
// pod. The floor is the encoding of the plan, which every write needs.
func BenchmarkNode(b *testing.B) {
	var markers []*v1alpha1.PodProbeMarker
	for i := range 10 {
		app := fmt.Sprint("app-", i)
		markers = append(markers, builders.Marker("ns", app).Selector("app", app).Probe(builders.Probe("idle")).Build())
	}
	var pods []*corev1.Pod
	for i := range 30 {
		pods = append(pods, builders.Pod("ns", fmt.Sprint("pod-", i)).Label("app", fmt.Sprint("app-", i%10)).Build())
	}
	compiled := compile(b, markers...)
	var spec v1alpha1.NodePodProbeSpec
	floor.Compare(b, "x_of_encoding", func() {
		spec = plan.Node(pods, compiled, plan.KubernetesDefaults())
		slicing.Place(spec.PodProbes, nil, "node")
	}, func() {
		if _, err := json.Marshal(spec); err != nil || len(spec.PodProbes) != len(pods) {
			b.Fatalf("plan has %d pods, error %v", len(spec.PodProbes), err)
		}
	})
}
