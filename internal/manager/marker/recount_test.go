// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// Changes of states cause at most one write of the status in two seconds, and no other check of the
// marker. Messages, a restart and the write itself cause none.
func TestRecount(t *testing.T) {
	f := newWorld(t)
	marker := stored(builders.Marker("ns", "web").Probe(label("p", "web")))
	report := func(state v1alpha1.ProbeState, message string) seamarkv1alpha1.ProbeReport {
		slice := seamarkv1alpha1.ProbeReport{NodeName: "n"}
		slice.Name = "n.0"
		for _, pod := range []string{"a", "b"} {
			slice.Pods = append(slice.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod, UID: "uid-" + pod, Probes: []v1alpha1.ContainerProbeState{
				{Name: "web#p", State: state, Message: message},
			}})
			state = v1alpha1.ProbeSucceeded
		}
		return slice
	}
	f.slices = []seamarkv1alpha1.ProbeReport{report(v1alpha1.ProbeSucceeded, "")}
	f.addPods(game("a").Node("n").Build(), game("b").Node("n").Build(), game("c").Node("n").Build())
	f.addMarkers(marker)
	f.check("ns")
	changes := func(after seamarkv1alpha1.ProbeReport) bool {
		before := f.slices[0]
		f.slices = []seamarkv1alpha1.ProbeReport{after}
		f.r.sliceEvents().Update(t.Context(), event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport]{ObjectOld: &before, ObjectNew: &after}, f.queue)
		return len(fakeapi.Drain(f.queue)) > 0
	}
	status := func() v1alpha1.PodProbeMarkerStatus { return f.markers[client.ObjectKeyFromObject(marker)].Status }
	if s := status(); s.Succeeded != 2 || s.Failed != 0 || len(s.Probes) != 1 || s.Probes[0].NotRunning != 1 {
		t.Errorf("first status %+v", s)
	}
	if changes(report(v1alpha1.ProbeSucceeded, "other message")) {
		t.Error("a message makes the marker due")
	}
	if !changes(report(v1alpha1.ProbeFailed, "")) {
		t.Error("a changed state does not make the marker due")
	}
	f.statuses, f.computed = nil, 0
	if wait := f.check("ns"); wait > interval || wait < interval-time.Second || len(f.statuses) > 0 {
		t.Errorf("the next pass is due in %s, %d writes, want none before %s", wait, len(f.statuses), interval)
	}
	f.now = f.now.Add(interval)
	f.check("ns")
	if s := status(); s.Succeeded != 1 || s.Failed != 1 || s.Probes[0].NotRunning != 1 || len(f.statuses) == 0 {
		t.Errorf("status after the change %+v", s)
	}
	if f.computed != 1 {
		t.Errorf("the count read %d reports of nodes or plans of pods, want one report", f.computed)
	}
	f.statuses = nil
	again := New(f.r.Options)
	again.touch(f.queue, "ns", "web")
	again.touchCounts(f.queue, "ns", "web")
	f.r = again
	for range 3 {
		f.now = f.now.Add(interval)
		f.check("ns")
	}
	if len(f.statuses) > 0 {
		t.Errorf("%d conditions written after a restart, want none", len(f.statuses))
	}
}
