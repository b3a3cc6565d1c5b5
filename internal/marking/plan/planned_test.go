// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
)

func TestMarkers(t *testing.T) {
	spec := func(namespace, probe string) *v1alpha1.NodePodProbeSpec {
		return &v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
			Namespace: namespace, Name: "a", Probes: []v1alpha1.ContainerProbe{{Name: probe}},
		}}}
	}
	cases := map[string]struct {
		spec *v1alpha1.NodePodProbeSpec
		want bool
	}{
		"probe of the marker":          {spec: spec("ns", "web#p"), want: true},
		"marker of another namespace":  {spec: spec("other", "web#p")},
		"marker name with prefix":      {spec: spec("ns", "my-web#p")},
		"marker name with suffix":      {spec: spec("ns", "web-2#p")},
		"probe with the marker's name": {spec: spec("ns", "my#web")},
		"no pods":                      {spec: &v1alpha1.NodePodProbeSpec{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := plan.Markers(tc.spec, "ns").Has("web"); got != tc.want {
				t.Errorf("the plan has probes of the marker: %t, want %t", got, tc.want)
			}
		})
	}
}
