// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/interleave"
)

// A marked pod loses its label while its marker changes. In each order of stores and handlers, the
// pod is enqueued after a change that removes its mark.
func TestNoWakeUpIsLost(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	pod := func(app string) *corev1.Pod {
		return builders.Pod("ns", "a").Label("app", app).Label("healthy", "true").ManagedFields("seamark", "status", entry).Build()
	}
	marker := func() *builders.MarkerBuilder {
		return builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true"))
	}
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":       marker().Deleting().Build(),
		"marker is deleted":             nil,
		"marker gets another selector":  marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe":  marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
		"marker gets another condition": marker().Probe(builders.Probe("q").Condition("x/y")).Generation(2).Build(),
	}
	for name, changed := range changes {
		race := interleave.Race{
			PodBefore: pod("game"), PodAfter: pod("other"),
			MarkerBefore: marker().Build(), MarkerAfter: changed,
			Others: []client.Object{reported("uid-a", "Succeeded")},
		}
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				written := &recorded{}
				r := reconciler(t, written)
				race.Play(t, order, interleave.Controller{
					Pods: r.podEvents(), Markers: controllers.MarkerEvents(r.enqueueSelected),
					Store:   func(c client.Client) { r.Reader.Client = c },
					Stepped: func(q controllers.Queue, _ bool) { drain(t, r, q) },
				})
				expect.Equal(t, "labels written", []map[string]string{nil}, written.labels)
			})
		}
	}
}
