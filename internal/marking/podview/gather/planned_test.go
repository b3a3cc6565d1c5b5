// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
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
