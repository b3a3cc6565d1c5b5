// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/test/builders"
)

// A marker that does not count in a pod has a row for each of its probes.
func TestMarkerThatDoesNotCount(t *testing.T) {
	in := newInput().build(t)
	in.Markers[0].CreationTimestamp = metav1.Unix(2000, 0)
	for i := range plan.MaxMarkers {
		m := builders.Marker("ns", fmt.Sprintf("m%02d", i)).Probe(builders.Probe("p")).Build()
		m.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		in.Markers = append(in.Markers, m)
	}
	rows := probestate.Of(in).Rows
	i := slices.IndexFunc(rows, func(r probestate.Row) bool { return r.Marker == "game" })
	if len(rows) != plan.MaxMarkers+1 || i < 0 {
		t.Fatalf("%d rows, that of the marker at %d; want %d", len(rows), i, plan.MaxMarkers+1)
	}
	want := row(problem("TooManyMarkers", "more than 64 markers select the pod, and only the oldest count: m00, m01, m02 and 61 more"))
	if diff := cmp.Diff(want, rows[i]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}
