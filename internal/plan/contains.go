// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// Contains reports whether the plan has a probe of the marker.
func Contains(spec *v1alpha1.NodePodProbeSpec, marker types.NamespacedName) bool {
	for i := range spec.PodProbes {
		pod := &spec.PodProbes[i]
		if pod.Namespace != marker.Namespace {
			continue
		}
		for j := range pod.Probes {
			if id, err := probeid.Parse(pod.Probes[j].Name); err == nil && id.Marker == marker.Name {
				return true
			}
		}
	}
	return false
}
