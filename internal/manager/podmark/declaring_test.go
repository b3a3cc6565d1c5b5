// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestMarkersOfALimitedPod checks that a limited pod remembers few of the markers that declare its keys, and only those that
// select it: a namespace may have 1,000 others.
func TestMarkersOfALimitedPod(t *testing.T) {
	compiler, pod := plan.NewCompiler(), builders.Pod("ns", "a").Label("app", "web").Build()
	var markers []*plan.Marker
	for i := range 1000 {
		app := "other"
		if i%20 == 0 {
			app = "web"
		}
		marker := builders.Marker("ns", fmt.Sprintf("%s-%d", app, i)).Selector("app", app).
			Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "1")).Build()
		markers = append(markers, compiler.All([]*v1alpha1.PodProbeMarker{marker})...)
	}
	c := change{desired: mark.Marks{mark.Label("role"): {}}}
	found := c.declaring(pod, markers)
	expect.Equal(t, "markers", maxDeclaring, len(found))
	for _, name := range found {
		if !strings.HasPrefix(name, "web-") {
			t.Errorf("marker %s does not select the pod", name)
		}
	}
	var l limit
	for _, each := range [][]string{found[:10], found[5:], {"another"}} {
		before := l.markers.Len()
		copied := l
		l.blame(each)
		if copied.markers.Len() != before || l.markers.Len() > maxDeclaring {
			t.Errorf("%d markers, %d in the copy", l.markers.Len(), copied.markers.Len())
		}
	}
}
