// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/test/builders"
)

// newMarker returns a reconciler with a marker that has just been created.
func newMarker(t *testing.T) *releasing {
	t.Helper()
	f := newReleasing(t)
	f.marker = builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "web", "1")).Build()
	f.marker.Finalizers, f.marker.ResourceVersion = nil, "10"
	f.r.Problems, f.r.Shortages = controller.NewMarkProblems(&controller.Inbox{}), controller.NewShortages()
	return f
}

func TestFinalizerIsNotAddedAgainBeforeTheCacheHasIt(t *testing.T) {
	f := newMarker(t)
	f.reconcile()
	f.reconcile()
	if diff := cmp.Diff([]int{1}, f.finalizers); diff != "" {
		t.Fatalf("finalizers before the cache has the write (-want +got):\n%s", diff)
	}
	f.marker.ResourceVersion = "1001" // A user removed the finalizer later.
	f.reconcile()
	if diff := cmp.Diff([]int{1, 1}, f.finalizers); diff != "" {
		t.Errorf("finalizers after another write (-want +got):\n%s", diff)
	}
}

// A write with the resource version of the cache would be a conflict.
func TestStatusIsNotWrittenAgainBeforeTheCacheHasIt(t *testing.T) {
	f := newMarker(t)
	f.marker.Finalizers, f.marker.Generation = []string{v1alpha1.PodProbeMarkerFinalizer}, 1
	f.stored = "20"
	f.reconcile()
	written := len(f.statuses)
	pod := builders.Pod("ns", "a").Label("app", "game").Build()
	f.pods["a"] = pod
	f.now = f.now.Add(2 * time.Second)
	f.reconcile()
	if len(f.statuses) != written || written == 0 {
		t.Fatalf("%d conditions written with the old resource version, want 0 more than %d", len(f.statuses), written)
	}
	f.marker.ResourceVersion = "20"
	if wait := f.reconcile(); wait > 0 || f.marker.Status.MatchedPods != 1 {
		t.Errorf("status has %d matched pods and waits %s when the cache has the last write, want 1 at once", f.marker.Status.MatchedPods, wait)
	}
}
