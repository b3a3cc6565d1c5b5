// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
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
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
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
