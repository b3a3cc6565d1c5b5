// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/interleave"
)

// A planned pod loses its label while its marker changes. In each order of stores and handlers, the
// node is touched after a change that removes the pod from the plan.
func TestNoWakeUpIsLost(t *testing.T) {
	pod := func(app string) *corev1.Pod { return builders.Pod("ns", "a").Label("app", app).Node("node-1").Build() }
	marker := func() *builders.MarkerBuilder { return builders.Marker("ns", "web").Probe(builders.Probe("p")) }
	npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
		Namespace: "ns", Name: "a", UID: "uid-a", Probes: []v1alpha1.ContainerProbe{{Name: "web#p"}},
	}}})
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":      marker().Deleting().Build(),
		"marker is deleted":            nil,
		"marker gets another selector": marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe": marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
	}
	for name, changed := range changes {
		race := interleave.Race{
			PodBefore: pod("game"), PodAfter: pod("other"),
			MarkerBefore: marker().Build(), MarkerAfter: changed,
			Others: []client.Object{npp},
		}
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				r := reconciler(t, &recorded{}, nil, nil)
				touched := false
				race.Play(t, order, interleave.Controller{
					Pods: r.podEvents(), Markers: controllers.MarkerEvents(r.touchNodes),
					Store: func(c client.Client) { r.Reader.Client = c },
					// Either change removes the pod from the plan, if the node is compiled afterwards.
					Stepped: func(_ controllers.Queue, changed bool) {
						if _, open := r.bursts.Take("node-1"); open {
							touched = touched || changed
						}
					},
				})
				if !touched {
					t.Error("the node is not touched")
				}
			})
		}
	}
}
