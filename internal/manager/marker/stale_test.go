// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// newMarker returns a world with a marker that has just been created.
func newMarker(t *testing.T) (*world, *v1alpha1.PodProbeMarker) {
	t.Helper()
	f := newWorld(t)
	marker := builders.Marker("ns", "web").Probe(label("p", "web")).Build()
	marker.Finalizers, marker.ResourceVersion = nil, "10"
	f.addMarkers(marker)
	return f, marker
}

func (f *world) touched(marker *v1alpha1.PodProbeMarker) {
	f.Helper()
	f.addMarkers(marker)
	f.check(marker.Namespace)
}

func TestFinalizerIsNotAddedAgainBeforeTheCacheHasIt(t *testing.T) {
	f, marker := newMarker(t)
	f.check("ns")
	f.touched(marker)
	if diff := cmp.Diff([]int{1}, f.finalizers); diff != "" {
		t.Fatalf("finalizers before the cache has the write (-want +got):\n%s", diff)
	}
	marker.ResourceVersion = "1001" // A user removed the finalizer later.
	f.touched(marker)
	expect.Equal(t, "finalizers after another write", []int{1, 1}, f.finalizers)
}

// A write with the resource version of the cache would be a conflict.
func TestStatusIsNotWrittenAgainBeforeTheCacheHasIt(t *testing.T) {
	f, marker := newMarker(t)
	marker.Finalizers, marker.Generation = []string{v1alpha1.PodProbeMarkerFinalizer}, 1
	f.stored = "20"
	f.check("ns")
	written := len(f.statuses)
	f.addPods(game("a").Build())
	f.now = f.now.Add(2 * time.Second)
	f.touched(marker)
	if len(f.statuses) != written || written == 0 {
		t.Fatalf("%d conditions written with the old resource version, want 0 more than %d", len(f.statuses), written)
	}
	marker.ResourceVersion = "20"
	if f.touched(marker); marker.Status.MatchedPods != 1 {
		t.Errorf("status has %d matched pods when the cache has the last write, want 1 at once", marker.Status.MatchedPods)
	}
}
