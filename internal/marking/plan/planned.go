// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Markers returns the names of the markers of the namespace that have probes in the plan, or nil if
// there are none.
func Markers(spec *v1alpha1.NodePodProbeSpec, namespace string) sets.Set[string] {
	var markers sets.Set[string]
	last := ""
	for i := range spec.PodProbes {
		pod := &spec.PodProbes[i]
		if pod.Namespace != namespace {
			continue
		}
		for j := range pod.Probes {
			id, err := probeid.Parse(pod.Probes[j].Name)
			if err != nil || id.Marker == last {
				continue
			}
			if markers == nil {
				markers = sets.New[string]()
			}
			markers.Insert(id.Marker)
			last = id.Marker
		}
	}
	return markers
}
