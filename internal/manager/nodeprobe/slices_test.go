// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeprobe

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// changedBy returns the ProbeReport after another manager than the agent has set its pods.
func changedBy(slice *seamarkv1alpha1.ProbeReport, manager string) *seamarkv1alpha1.ProbeReport {
	slice.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:pods":{}}`)}}
	return slice
}

// TestLostReports changes ProbeReports in several ways and checks which requests the agent gets.
func TestLostReports(t *testing.T) {
	planned := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "uid-a"}}}
	plan := func(change func(*v1alpha1.NodePodProbe)) []client.Object {
		npp := nodePodProbe("node-1", "u", planned)
		change(npp)
		return []client.Object{node("node-1", "u"), npp}
	}
	unchanged := func(*v1alpha1.NodePodProbe) {}
	asked := func(value string) func(*v1alpha1.NodePodProbe) {
		return func(npp *v1alpha1.NodePodProbe) {
			npp.Annotations = map[string]string{v1alpha1.RestoreReportsAnnotationKey: value}
		}
	}
	type reports = []*seamarkv1alpha1.ProbeReport
	cases := map[string]struct {
		cached []client.Object
		// initial, updated and deleted are the events in this order. updated has two versions.
		initial, updated, deleted reports
		err                       error
		want                      []string
	}{
		"written by the agent": {
			cached: plan(unchanged), initial: reports{slice("1", "a")}, updated: reports{slice("1", "a"), slice("2", "a", "b")},
		},
		"deleted":                     {cached: plan(unchanged), deleted: reports{slice("5", "a")}, want: []string{"restore node-1: node-1.0/slice"}},
		"deleted with unplanned pods": {cached: plan(unchanged), deleted: reports{slice("5", "b")}},
		"deleted, no NodePodProbe":    {cached: []client.Object{node("node-1", "u")}, deleted: reports{slice("5", "a")}},
		"deleted, no node":            {cached: []client.Object{nodePodProbe("node-1", "u", planned)}, deleted: reports{slice("5", "a")}},
		"deleted, plan of another node": {
			cached: []client.Object{node("node-1", "new"), nodePodProbe("node-1", "u", planned)}, deleted: reports{slice("5", "a")},
		},
		"deleted, states in the status": {
			cached: plan(func(npp *v1alpha1.NodePodProbe) {
				npp.Status.PodProbeStatuses = []v1alpha1.PodProbeStatus{{UID: "uid-a"}}
			}),
			deleted: reports{slice("5", "a")},
		},
		"changed": {
			cached: plan(unchanged), updated: reports{slice("4", "a"), changedBy(slice("5"), "kubectl-edit")},
			want: []string{"restore node-1: node-1.0/5"},
		},
		"changed again": {
			cached: plan(asked("node-1.0/4")), updated: reports{changedBy(slice("4", "a"), "kubectl-edit"), changedBy(slice("5"), "kubectl-edit")},
			want: []string{"restore node-1: node-1.0/5"},
		},
		"changed except for the pods": {
			cached: plan(asked("node-1.0/4")), updated: reports{changedBy(slice("4", "a"), "kubectl-edit"), changedBy(slice("5", "a"), "kubectl-edit")},
		},
		"changed by the agent":   {cached: plan(unchanged), updated: reports{slice("4", "a"), changedBy(slice("5", "b"), "seamark-agent")}},
		"pods removed":           {cached: plan(unchanged), updated: reports{slice("4", "a"), slice("5")}, want: []string{"restore node-1: node-1.0/5"}},
		"unplanned pods removed": {cached: plan(unchanged), updated: reports{slice("4", "b"), slice("5")}},
		"changed before the start": {
			cached: plan(unchanged), initial: reports{changedBy(slice("5"), "kubectl-edit")}, want: []string{"restore node-1: node-1.0/5"},
		},
		"already asked": {cached: plan(asked("node-1.0/5")), initial: reports{changedBy(slice("5"), "kubectl-edit")}},
		"several": {
			cached:  plan(unchanged),
			initial: reports{changedBy(slice("7"), "kubectl-edit"), changedBy(slice("6"), "kubectl-edit")},
			want:    []string{"restore node-1: node-1.0/7"},
		},
		"NodePodProbe is gone": {
			cached: plan(unchanged), deleted: reports{slice("5", "a")}, err: apply.ErrGone,
			want: []string{"restore node-1: node-1.0/slice", "restore node-1: node-1.0/slice"},
		},
		"write fails": {
			cached: plan(unchanged), deleted: reports{slice("5", "a")}, err: errors.New("no answer"),
			want: []string{"restore node-1: node-1.0/slice", "restore node-1: node-1.0/slice"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := &recorded{err: tc.err}
			r := reconciler(t, &recorded{}, tc.cached, nil)
			r.Slices = calls
			q := fakeapi.Queue(t)
			events := r.sliceEvents()
			for _, slice := range tc.initial {
				events.Create(t.Context(), event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport]{Object: slice, IsInInitialList: true}, q)
			}
			if len(tc.updated) > 0 {
				events.Update(t.Context(), event.TypedUpdateEvent[*seamarkv1alpha1.ProbeReport]{ObjectOld: tc.updated[0], ObjectNew: tc.updated[1]}, q)
			}
			for _, slice := range tc.deleted {
				events.Delete(t.Context(), event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport]{Object: slice}, q)
			}
			if _, touched := r.bursts.Take("node-1"); len(tc.want) > 0 && !touched {
				t.Error("the node is not enqueued")
			}
			// The cache never has the annotation, so the second reconcile must remember it.
			for range 2 {
				_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}})
				if fails := tc.err != nil && !errors.Is(tc.err, apply.ErrGone); (err != nil) != fails {
					t.Fatalf("error %v, want an error: %t", err, fails)
				}
			}
			expect.Equal(t, "requests to the agent", tc.want, calls.calls)
		})
	}
}

// TestReportsLostWithTheirPlan deletes a ProbeReport while the NodePodProbe is deleted too. The agent
// is asked when there is another one, if it plans a pod of the ProbeReport.
func TestReportsLostWithTheirPlan(t *testing.T) {
	planned := func() *v1alpha1.NodePodProbe {
		return nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "uid-a"}}})
	}
	deleting := planned()
	deleting.Finalizers, deleting.DeletionTimestamp = []string{"foregroundDeletion"}, &metav1.Time{Time: time.Unix(1, 0)}
	restored := []string{"restore node-1: node-1.0/last"}
	for name, tc := range map[string]struct {
		pod string
		// cached is the NodePodProbe in the cache, if any.
		cached *v1alpha1.NodePodProbe
		want   []string
	}{
		"deleted before":                      {pod: "a", want: restored},
		"deleted before, pod of another plan": {pod: "b"},
		"being deleted":                       {pod: "a", cached: deleting, want: restored},
		"deletion is not in the cache":        {pod: "a", cached: planned(), want: restored},
	} {
		t.Run(name, func(t *testing.T) {
			calls, cached := &recorded{err: apply.ErrGone}, []client.Object{node("node-1", "u")}
			if tc.cached != nil {
				cached = append(cached, tc.cached)
			} else {
				calls.err = nil
			}
			r := reconciler(t, calls, cached, nil)
			q := fakeapi.Queue(t)
			r.sliceEvents().Delete(t.Context(), event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport]{Object: slice("5", tc.pod)}, q)
			last := slice("6", tc.pod)
			last.UID = "last"
			r.sliceEvents().Delete(t.Context(), event.TypedDeleteEvent[*seamarkv1alpha1.ProbeReport]{Object: last}, q)
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}
			r.bursts.Forget("node-1")
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			created := reconciler(t, calls, []client.Object{node("node-1", "u"), planned()}, nil)
			r.Reader.Client = created.Reader.Client
			calls.calls, calls.err = nil, nil
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			asked := slices.DeleteFunc(calls.calls, func(call string) bool { return !strings.HasPrefix(call, "restore") })
			expect.Equal(t, "requests to the agent", tc.want, asked, cmpopts.EquateEmpty())
		})
	}
}

// TestReportsLostBeforeTheStart starts with a planned pod, and checks whether the agent is asked to restore its report.
func TestReportsLostBeforeTheStart(t *testing.T) {
	marked := []metav1.ManagedFieldsEntry{{
		Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:healthy":{}}}}`),
	}}
	for name, tc := range map[string]struct {
		fields   []metav1.ManagedFieldsEntry
		reported string
		want     []string
	}{
		"marked and not reported": {fields: marked, reported: "b", want: []string{"restore node-1: unreported/999"}},
		"marked and reported":     {fields: marked, reported: "a"},
		"not marked":              {reported: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("ns", "a").Build()
			pod.UID, pod.Spec.NodeName, pod.ManagedFields = "uid-a", "node-1", tc.fields
			npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "uid-a"}}})
			calls := &recorded{}
			r := reconciler(t, &recorded{}, []client.Object{node("node-1", "u"), npp, pod, slice("", tc.reported)}, nil)
			r.Slices = calls
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); err != nil {
					t.Fatal(err)
				}
			}
			expect.Equal(t, "requests to the agent", tc.want, calls.calls)
		})
	}
}

// The pod in the plan is gone, which markers that are being deleted may wait for.
func TestPlanIsWrittenAlthoughTheRequestToTheAgentFails(t *testing.T) {
	failing, plans := &recorded{err: errors.New("no answer")}, &recorded{}
	npp := nodePodProbe("node-1", "u", v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "uid-a"}}})
	r := reconciler(t, plans, []client.Object{node("node-1", "u"), npp}, nil)
	r.Slices = failing
	r.losses.Set("node-1", deletion(slice("5", "a")))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node-1"}}); !errors.Is(err, failing.err) {
		t.Errorf("error %v, want %v", err, failing.err)
	}
	expect.Equal(t, "writes of plans", []string{"refer node-1"}, plans.calls)
}

// TestReportsOfNodesWithoutAgent checks that a ProbeReport enqueues its node only if the node may have
// no agent.
func TestReportsOfNodesWithoutAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		cached []client.Object
		want   bool
	}{
		"node with an agent": {cached: []client.Object{node("node-1", "u")}},
		"virtual node":       {cached: []client.Object{virtualNode("node-1")}, want: true},
		"no node":            {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{}, tc.cached, nil)
			q := fakeapi.Queue(t)
			r.sliceEvents().Create(t.Context(), event.TypedCreateEvent[*seamarkv1alpha1.ProbeReport]{Object: slice("1", "a"), IsInInitialList: true}, q)
			if _, got := r.bursts.Get("node-1"); got != tc.want {
				t.Errorf("enqueued: %t, want %t", got, tc.want)
			}
		})
	}
}
