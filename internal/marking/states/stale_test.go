// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestStale(t *testing.T) {
	pod := builders.Pod("ns", "game").Node("node").Build()
	for name, test := range map[string]struct {
		changed any
		want    bool
	}{
		"the pod":               {builders.Pod("ns", "game").Build(), true},
		"another pod":           {builders.Pod("ns", "web").Node("node").Build(), false},
		"namesake elsewhere":    {builders.Pod("other", "game").Build(), false},
		"marker":                {builders.Marker("ns", "marker").Build(), true},
		"marker elsewhere":      {builders.Marker("other", "marker").Build(), false},
		"node":                  {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, true},
		"plan":                  {&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, true},
		"plan of another node":  {&v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, false},
		"report":                {&seamarkv1alpha1.ProbeReport{NodeName: "node"}, true},
		"report of other nodes": {&seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: "node"}, NodeName: "other"}, false},
		"unknown object":        {"node", false},
	} {
		stale := probestate.NewStale()
		if stale.Note(test.changed); stale.Has(pod) != test.want {
			t.Errorf("%s has changed: stale %t, want %t", name, !test.want, test.want)
		}
	}
}
