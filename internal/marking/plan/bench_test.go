// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/floor"
)

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
