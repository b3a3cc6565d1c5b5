// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
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
	expect.Equal(t, "reports of nodes and plans of pods that the count read", 1, f.computed)
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

// Pods that have lost their claim to exclusive marks count as Unknown. A moved ticket makes the counts due, and an unrelated label does not.
func TestRecountOfExclusiveMarks(t *testing.T) {
	f := newWorld(t)
	probe := label("p", "primary").Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"})
	marker := stored(builders.Marker("ns", "web").Probe(probe))
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	ticket := compiled.Exclusives()[0].Ticket
	pod := func(name string, labels ...string) *corev1.Pod {
		b := game(name).Node("n").Label("shard", "0")
		for _, key := range labels {
			b.Label(key, "0")
		}
		return b.Build()
	}
	slice := seamarkv1alpha1.ProbeReport{NodeName: "n"}
	slice.Name = "n.0"
	for name, state := range map[string]v1alpha1.ProbeState{"a": v1alpha1.ProbeSucceeded, "b": v1alpha1.ProbeSucceeded, "c": v1alpha1.ProbeFailed} {
		slice.Pods = append(slice.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: name, UID: "uid-" + name, Probes: []v1alpha1.ContainerProbeState{
			{Name: "web#p", State: state},
		}})
	}
	f.slices = []seamarkv1alpha1.ProbeReport{slice}
	f.addPods(pod("a", ticket), pod("b"), pod("c"))
	f.addMarkers(marker)
	counts := func(about string, want ...int64) {
		t.Helper()
		f.now = f.now.Add(interval)
		f.check("ns")
		s := f.markers[client.ObjectKeyFromObject(marker)].Status
		expect.Equal(t, about+": succeeded, failed and unknown", want, []int64{s.Succeeded, s.Failed, s.Unknown})
	}
	counts("one has the ticket", 1, 1, 1)
	for _, next := range []*corev1.Pod{pod("a"), pod("b", ticket), pod("c", "shard", "other")} {
		expect.Equal(t, "counts of pod "+next.Name+" are due", next.Name != "c", f.update(next))
	}
	counts("the ticket has moved", 1, 1, 1)
	expect.Equal(t, "counts without a holder are due", true, f.update(pod("b")))
	counts("none has the ticket", 0, 1, 2)
}

// lost returns a reconciler whose cache has the markers and the pods, of which each has a succeeded state of the marker web. Their node is
// lost, and the manager was started since.
func lost(t *testing.T, markers []*v1alpha1.PodProbeMarker, pods ...*corev1.Pod) *Reconciler {
	t.Helper()
	report := &seamarkv1alpha1.ProbeReport{NodeName: "n"}
	report.Name = "n.0"
	for _, pod := range pods {
		report.Pods = append(report.Pods, seamarkv1alpha1.PodReport{Namespace: "ns", Name: pod.Name, UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{
			{Name: "web#p", State: v1alpha1.ProbeSucceeded},
		}})
	}
	r := newBench(t, pods, markers)
	r.Reader.Stores.Slices = fakeapi.NewStore(t, gather.SliceIndexers(), []*seamarkv1alpha1.ProbeReport{report})
	r.Reader.Outages = func(string) staleness.Outage {
		return staleness.Outage{Cause: staleness.NodeGone, Length: time.Second, StartUnknown: true}
	}
	return r
}

// The marks of a pod say that its state was stale. Those of a pod that are not known do not tell, so its state counts as reported, and
// do not stop the count of others.
func TestRecountWithUnreadableMarks(t *testing.T) {
	markers := []*v1alpha1.PodProbeMarker{stored(builders.Marker("ns", "web").Probe(label("p", "web").StaleAfter(30)))}
	r := lost(t, markers, game("a").Node("n").Build(), game("b").Node("n").ManagedFields("seamark", "status", `{"f:metadata":[]}`).Build())
	counts, err := r.count(t.Context(), markers)
	expect.NoError(t, err)
	var status v1alpha1.PodProbeMarkerStatus
	if counts["web"].Fill(&status); status.Succeeded != 1 || status.Probes[0].Stale != 1 {
		t.Errorf("status %+v, want one succeeded and one stale state", status)
	}
}

// The count of a pod on a lost node costs the same, however many markers of the namespace have states that become stale.
func TestRecountOfLostNodes(t *testing.T) {
	cost := func(others int) float64 {
		markers := []*v1alpha1.PodProbeMarker{stored(builders.Marker("ns", "web").Probe(label("p", "web")))}
		for i := range others {
			markers = append(markers, stored(builders.Marker("ns", fmt.Sprint("m", i)).Selector("app", "other").Probe(label("p", "other").StaleAfter(30))))
		}
		var pods []*corev1.Pod
		for i := range 10 {
			pods = append(pods, game(fmt.Sprint("p", i)).Node("n").Build())
		}
		r := lost(t, markers, pods...)
		count := func() {
			if _, err := r.count(t.Context(), markers); err != nil {
				t.Fatal(err)
			}
		}
		down := testing.AllocsPerRun(10, count)
		r.Reader.Outages = nil
		return down - testing.AllocsPerRun(10, count)
	}
	if few, many := cost(1), cost(100); many > few+100 {
		t.Errorf("a lost node with 10 pods costs %.0f allocations with 100 other markers, and %.0f with one", many, few)
	}
}
