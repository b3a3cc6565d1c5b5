// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
	"github.com/seamark-dev/seamark/test/interleave"
)

// stateSince returns the state of web#p whose last transition was at the second.
func stateSince(state v1alpha1.ProbeState, second int64) v1alpha1.ContainerProbeState {
	at := metav1.Unix(second, 0)
	return v1alpha1.ContainerProbeState{Name: "web#p", State: state, LastTransitionTime: at, LastProbeTime: at}
}

// inStatus returns the NodePodProbe of node-1 with states of pod a, if any.
func inStatus(probeReports bool, states ...v1alpha1.ContainerProbeState) *v1alpha1.NodePodProbe {
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	npp.Status.ProbeReports = probeReports
	if len(states) > 0 {
		npp.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{Namespace: "ns", Name: "a", UID: "uid-a", ProbeStates: states}}
	}
	return npp
}

// planned returns the NodePodProbe of node-1 whose agent reports in ProbeReports and runs a generation
// of the plan. The stored generation has the pods with the UIDs.
func planned(running, generation int64, uids ...string) *v1alpha1.NodePodProbe {
	npp := inStatus(true)
	npp.Generation, npp.Status.ObservedGeneration = generation, running
	for _, uid := range uids {
		npp.Spec.PodProbes = append(npp.Spec.PodProbes, v1alpha1.PodProbe{Namespace: "ns", Name: strings.TrimPrefix(uid, "uid-"), UID: uid})
	}
	return npp
}

// ofOpenKruise returns the NodePodProbe as the daemon of OpenKruise reports.
func ofOpenKruise(npp *v1alpha1.NodePodProbe) *v1alpha1.NodePodProbe {
	npp.Status.ProbeReports = false
	return npp
}

// inSlice returns a ProbeReport of node-1 with the states of pod a.
func inSlice(name string, states ...v1alpha1.ContainerProbeState) *seamarkv1alpha1.ProbeReport {
	slice := &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: name}, NodeName: "node-1"}
	slice.Pods = []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "a", UID: "uid-a", Probes: states}}
	return slice
}

// move is a change of a node's NodePodProbe and of its ProbeReports, which the caches receive
// independently of each other.
type move struct {
	before, after     *v1alpha1.NodePodProbe
	slices, newSlices []*seamarkv1alpha1.ProbeReport
	// busy is whether other events enqueue the pods after each step.
	busy bool
}

// play plays the move in one of interleave.Orders: P and p are the store and the handler of the
// NodePodProbe, M and m those of the ProbeReports. After each handler, the queue is emptied.
func (m move) play(t *testing.T, order string, r *Reconciler, others ...client.Object) {
	t.Helper()
	q := fakeapi.Queue(t)
	npp, slices := m.before, m.slices
	for _, step := range order {
		switch step {
		case 'P':
			npp = m.after
		case 'M':
			slices = m.newSlices
		}
		stored := append([]client.Object{npp}, others...)
		for _, slice := range slices {
			stored = append(stored, slice)
		}
		c := fakeapi.Client(t, stored...).WithReturnManagedFields().
			WithIndex(&corev1.Pod{}, gather.NodeNameField, func(client.Object) []string { return []string{"node-1"} }).Build()
		r.Reader.Client = c
		switch step {
		case 'p':
			r.statusEvents().Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.NodePodProbe]{ObjectOld: m.before, ObjectNew: m.after}, q)
		case 'm':
			m.sliceEvents(t, r, q)
		}
		if m.busy {
			enqueuePods(q, affected.LogError(r.Reader.NodePods(t.Context(), "node-1"))(t.Context()))
		}
		drain(t, r, q)
	}
}

func (m move) sliceEvents(t *testing.T, r *Reconciler, q controllers.Queue) {
	t.Helper()
	old := map[string]*seamarkv1alpha1.ProbeReport{}
	for _, slice := range m.slices {
		old[slice.Name] = slice
	}
	for _, slice := range m.newSlices {
		if before := old[slice.Name]; before != nil {
			r.sliceEvents().Update(t.Context(), event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport]{ObjectOld: before, ObjectNew: slice}, q)
		} else {
			r.sliceEvents().Create(t.Context(), event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport]{Object: slice}, q)
		}
		delete(old, slice.Name)
	}
	for _, slice := range old {
		r.sliceEvents().Delete(t.Context(), event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport]{Object: slice}, q)
	}
}

func drain(t *testing.T, r *Reconciler, q controllers.Queue) {
	t.Helper()
	for range q.Len() {
		request, _ := q.Get()
		q.Done(request)
		_, err := r.Reconcile(t.Context(), request)
		expect.NoError(t, err)
	}
}

// TestTakeoverKeepsMarks checks that no mark changes while an agent takes over from OpenKruise, in whatever
// order the caches receive the objects.
func TestTakeoverKeepsMarks(t *testing.T) {
	const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	type slices = []*seamarkv1alpha1.ProbeReport
	healthy := stateSince(succeeded, 20)
	moves := map[string]move{
		"takeover": {before: inStatus(false, healthy), after: inStatus(true), newSlices: slices{inSlice("node-1.0", healthy)}},
		"NodePodProbe is created again": {
			before: inStatus(true), slices: slices{inSlice("node-1.0", healthy)},
			after: inStatus(false), newSlices: slices{inSlice("node-1.0", healthy)},
		},
		"ProbeReport is lost": {before: planned(1, 1, "uid-a"), slices: slices{inSlice("node-1.0", healthy)}, after: planned(1, 1, "uid-a")},
		"ProbeReport and NodePodProbe are lost": {
			before: planned(7, 7, "uid-a"), slices: slices{inSlice("node-1.0", healthy)}, after: planned(0, 1, "uid-a"),
		},
		"agent runs the plan of a new NodePodProbe": {before: planned(0, 1, "uid-a"), after: planned(1, 1, "uid-a")},
		"plan of OpenKruise": {
			before: ofOpenKruise(planned(0, 4, "uid-b")), after: planned(5, 5, "uid-a", "uid-b"), newSlices: slices{inSlice("node-1.0", healthy)},
		},
		"plan lacks the pod": {before: planned(4, 4, "uid-a", "uid-b"), after: planned(4, 5, "uid-b")},
		"agent runs a plan without the pod": {
			before: planned(4, 5, "uid-b"), after: planned(5, 5, "uid-b"),
			slices: slices{inSlice("node-1.0", healthy)}, newSlices: slices{inSlice("node-1.0", healthy)},
		},
		"pod is in two ProbeReports for a while": {
			before: inStatus(true), slices: slices{inSlice("node-1.0", stateSince(failed, 10)), inSlice("node-1.1", healthy)},
			after: inStatus(true), newSlices: slices{inSlice("node-1.1", healthy)},
		},
	}
	for name, move := range moves {
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				written := &recorded{}
				move.busy = true
				move.play(t, order, reconciler(t, written), marked().Build(), healthyMarker())
				if len(written.labels) > 0 {
					t.Errorf("labels were written: %v", written.labels)
				}
			})
		}
	}
}

// TestEachSourceEnqueuesPods checks that a change of the states in either source, and the move from
// one to the other, changes the marks without any other event.
func TestEachSourceEnqueuesPods(t *testing.T) {
	const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	type slices = []*seamarkv1alpha1.ProbeReport
	old, late := stateSince(failed, 10), stateSince(succeeded, 20)
	other := inStatus(false, late)
	other.Status.PodProbeStatuses[0].Name, other.Status.PodProbeStatuses[0].UID = "b", "uid-b"
	moves := map[string]struct {
		move
		marked bool
		want   []map[string]string
	}{
		"ProbeReport is created": {
			move: move{before: inStatus(true), after: inStatus(true), newSlices: slices{inSlice("node-1.0", late)}},
			want: healthyLabels(),
		},
		"ProbeReport changes": {
			move: move{
				before: inStatus(true), after: inStatus(true), slices: slices{inSlice("node-1.0", old)},
				newSlices: slices{inSlice("node-1.0", late)},
			},
			want: healthyLabels(),
		},
		"second entry is deleted": {
			move: move{
				before: inStatus(true), after: inStatus(true), slices: slices{inSlice("node-1.0", stateSince(failed, 30)), inSlice("node-1.1", late)},
				newSlices: slices{inSlice("node-1.1", late)},
			},
			want: healthyLabels(),
		},
		"status changes": {move: move{before: inStatus(false, old), after: inStatus(false, late)}, want: healthyLabels()},
		"daemon of OpenKruise": {
			move: move{
				before: inStatus(true), after: inStatus(false, late), slices: slices{inSlice("node-1.0", old)},
				newSlices: slices{inSlice("node-1.0", old)},
			},
			want: healthyLabels(),
		},
		"takeover with another state": {
			move: move{before: inStatus(false, old), after: inStatus(true), newSlices: slices{inSlice("node-1.0", late)}},
			want: healthyLabels(),
		},
		"daemon of OpenKruise, pod without a state": {
			marked: true, want: []map[string]string{nil},
			move: move{
				before: inStatus(true), after: other, slices: slices{inSlice("node-1.0", late)},
				newSlices: slices{inSlice("node-1.0", late)},
			},
		},
	}
	for name, tc := range moves {
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				written := &recorded{}
				pod := builders.Pod("ns", "a").Label("app", "game")
				if tc.marked {
					pod = marked()
				}
				tc.play(t, order, reconciler(t, written), pod.Build(), healthyMarker())
				expect.Equal(t, "labels written", tc.want, written.labels)
			})
		}
	}
}

func marked() *builders.PodBuilder {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	return builders.Pod("ns", "a").Label("app", "game").Label("healthy", "true").ManagedFields("seamark", "status", entry)
}

func healthyMarker() *v1alpha1.PodProbeMarker {
	return builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()
}

func healthyLabels() []map[string]string { return []map[string]string{{"healthy": "true"}} }

// A marked pod loses its label while its marker changes. In each order of stores and handlers, the
// pod is enqueued after a change that removes its mark.
func TestNoWakeUpIsLost(t *testing.T) {
	pod := func(app string) *corev1.Pod { return marked().Label("app", app).Build() }
	marker := func() *builders.MarkerBuilder {
		return builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true"))
	}
	changes := map[string]*v1alpha1.PodProbeMarker{
		"marker is being deleted":       marker().Deleting().Build(),
		"marker is deleted":             nil,
		"marker gets another selector":  marker().Selector("app", "db").Generation(2).Build(),
		"marker gets an invalid probe":  marker().Probe(builders.Probe("q").Condition("Ready")).Generation(2).Build(),
		"marker gets another condition": marker().Probe(builders.Probe("q").Condition("x/y")).Generation(2).Build(),
	}
	for name, changed := range changes {
		race := interleave.Race{
			PodBefore: pod("game"), PodAfter: pod("other"),
			MarkerBefore: marker().Build(), MarkerAfter: changed,
			Others: []client.Object{reported("uid-a", "Succeeded")},
		}
		for _, order := range interleave.Orders() {
			t.Run(name+" "+order, func(t *testing.T) {
				written := &recorded{}
				r := reconciler(t, written)
				race.Play(t, order, interleave.Controller{
					Pods: r.podEvents(), Markers: controllers.MarkerEvents(r.enqueueSelected),
					Store:   func(c client.Client) { r.Reader.Client = c },
					Stepped: func(q controllers.Queue, _ bool) { drain(t, r, q) },
				})
				expect.Equal(t, "labels written", []map[string]string{nil}, written.labels)
			})
		}
	}
}
