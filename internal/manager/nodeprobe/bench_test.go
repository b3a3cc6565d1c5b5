// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/floor"
)

// editing returns a function that handles an edit of a marker without pods, while so many nodes have the plans of 30 pods
// of another marker each.
func editing(b *testing.B, nodes int) func() {
	b.Helper()
	var whole []*v1alpha1.NodePodProbe
	var sliced []*seamarkv1alpha1.ProbePlan
	for n := range nodes {
		npp := &v1alpha1.NodePodProbe{}
		npp.Name = fmt.Sprintf("node-%d", n)
		whole = append(whole, npp)
		for number := range 4 {
			slice := &seamarkv1alpha1.ProbePlan{NodeName: npp.Name}
			slice.Name = seamarkv1alpha1.SliceName(npp.Name, number)
			for i := range slicing.MaxPods {
				slice.Pods = append(slice.Pods, v1alpha1.PodProbe{
					Namespace: "games", Name: fmt.Sprint(n, number, i), UID: fmt.Sprint(n, number, i), Probes: []v1alpha1.ContainerProbe{{Name: "web#idle"}},
				})
			}
			sliced = append(sliced, slice)
		}
	}
	r := New(Options{Reader: gather.Reader{Stores: gather.Stores{
		Pods: fakeapi.NewStore[*corev1.Pod](b, gather.PodIndexers(), nil), NodePodProbes: fakeapi.NewStore(b, gather.NodePodProbeIndexers(), whole),
		Plans: fakeapi.NewStore(b, gather.PlanIndexers(), sliced),
	}}})
	marker, queue := builders.Marker("empty", "m").Build(), fakeapi.Queue(b)
	return func() { r.touchNodes(b.Context(), queue, marker) }
}

// BenchmarkEditOfMarker handles an edit of a marker without pods in a cluster of 5,000 nodes. The floor is one node.
func BenchmarkEditOfMarker(b *testing.B) {
	floor.Compare(b, "x_of_one_node", editing(b, 5000), editing(b, 1))
}
