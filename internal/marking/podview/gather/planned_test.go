// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/floor"
)

// probed returns a planned pod with probes of the markers.
func probed(namespace string, markers ...string) v1alpha1.PodProbe {
	pod := v1alpha1.PodProbe{Namespace: namespace, Name: "pod", UID: "uid"}
	for _, marker := range markers {
		pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: marker + "#p"}, v1alpha1.ContainerProbe{Name: marker + "#q"})
	}
	return pod
}

// list returns the members, nil if there are none.
func list(of sets.Set[string]) []string {
	if len(of) == 0 {
		return nil
	}
	return sets.List(of)
}

// TestPlanned finds the nodes of markers in plans of both kinds, from stores and with the client.
func TestPlanned(t *testing.T) {
	npp := func(node string, pods ...v1alpha1.PodProbe) *v1alpha1.NodePodProbe {
		return &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: v1alpha1.NodePodProbeSpec{PodProbes: pods}}
	}
	slice := func(node string, number int, pods ...v1alpha1.PodProbe) *seamarkv1alpha1.ProbePlan {
		return &seamarkv1alpha1.ProbePlan{ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node, number)}, NodeName: node, Pods: pods}
	}
	whole := []*v1alpha1.NodePodProbe{npp("a"), npp("b"), npp("old", probed("ns", "web"), probed("ns", "api"))}
	sliced := []*seamarkv1alpha1.ProbePlan{
		slice("a", 0, probed("other", "web")), slice("a", 1, probed("ns", "api", "web")), slice("b", 0, probed("ns", "api")), slice("b", 1),
	}
	var objects []client.Object
	for _, object := range whole {
		objects = append(objects, object)
	}
	for _, object := range sliced {
		objects = append(objects, object)
	}
	bare := gather.Reader{Client: fakeapi.Client(t, objects...).Build()}
	stored := gather.Reader{Client: broken{}, Stores: gather.Stores{
		NodePodProbes: fakeapi.NewStore(t, gather.NodePodProbeIndexers(), whole), Plans: fakeapi.NewStore(t, gather.PlanIndexers(), sliced),
	}}
	for name, reader := range map[string]gather.Reader{"stores": stored, "client": bare} {
		for _, test := range []struct{ markers, want []string }{
			{[]string{"web"}, []string{"a", "old"}},
			{[]string{"api"}, []string{"a", "b", "old"}},
			{[]string{"we", "b"}, nil},
			{[]string{"none", "web"}, []string{"a", "old"}},
		} {
			var markers []*v1alpha1.PodProbeMarker
			for _, marker := range test.markers {
				markers = append(markers, builders.Marker("ns", marker).Build())
			}
			got, err := reader.Planned(t.Context(), markers...)
			if diff := cmp.Diff(test.want, list(got)); err != nil || diff != "" {
				t.Errorf("%s, markers %v: error %v, nodes (-want +got):\n%s", name, test.markers, err, diff)
			}
		}
	}
}

// randomLabels returns labels of few keys and values.
func randomLabels(random *rand.Rand) map[string]string {
	all := map[string]string{}
	for range random.IntN(4) {
		all[fmt.Sprint("k", random.IntN(3))] = []string{"", "a", "bb"}[random.IntN(3)]
	}
	return all
}

// Random markers that match one of two random pods are found by the index, once each.
func TestMarkersOfLabels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	for range 300 {
		markers := fakeapi.NewStore[any](t, gather.MarkerIndexers(), nil)
		for i := range 6 {
			marker := builders.Marker("ns", fmt.Sprint("m", i)).Probe(builders.Probe("p")).Build()
			marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: randomLabels(random)}
			if random.IntN(2) == 0 {
				marker.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k1", Operator: operators[random.IntN(2)]}}
			}
			expect.NoError(t, markers.Add(marker))
		}
		reader := gather.Reader{Compiler: plan.NewCompiler(), Stores: gather.Stores{Markers: markers}}
		all, err := reader.Markers(t.Context(), "ns")
		expect.NoError(t, err)
		before, after := builders.Pod("ns", "a").Build(), builders.Pod("ns", "a").Build()
		before.Labels, after.Labels = randomLabels(random), randomLabels(random)
		found, err := reader.MarkersOf(t.Context(), "ns", before.Labels, after.Labels)
		expect.NoError(t, err)
		for _, marker := range all {
			if (marker.Matches(before) || marker.Matches(after)) && !slices.Contains(found, marker) {
				t.Errorf("marker with the selector %v is not found for %v and %v", marker.Requirements(), before.Labels, after.Labels)
			}
		}
		if distinct := sets.New(found...); len(distinct) < len(found) {
			t.Errorf("%d of %d found markers differ", len(distinct), len(found))
		}
	}
}

// BenchmarkMarkersOf finds the markers of a pod among 300. The floor is a namespace with one marker.
func BenchmarkMarkersOf(b *testing.B) {
	finding := func(markers int) func() {
		stored := fakeapi.NewStore[any](b, gather.MarkerIndexers(), nil)
		for i := range markers {
			marker := builders.Marker("ns", fmt.Sprint("m", i)).Selector("app", fmt.Sprint(i)).Probe(builders.Probe("p")).Build()
			expect.NoError(b, stored.Add(marker))
		}
		reader := gather.Reader{Compiler: plan.NewCompiler(), Stores: gather.Stores{Markers: stored}}
		labels := map[string]string{"app": "0", "tier": "web", "team": "a", "version": "1"}
		return func() {
			if found, err := reader.MarkersOf(b.Context(), "ns", labels); err != nil || len(found) != 1 {
				b.Fatalf("%d markers, error %v", len(found), err)
			}
		}
	}
	floor.Compare(b, "x_of_one_marker", finding(300), finding(1))
}
