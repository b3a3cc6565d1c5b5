// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// recorded records the labels that are applied to pods, and the keys that are removed.
type recorded struct {
	labels  []map[string]string
	removed []mark.Key
	err     error
}

func (r *recorded) Remove(_ context.Context, _ *corev1.Pod, keys []mark.Key) (string, error) {
	r.removed = append(r.removed, keys...)
	return "1000", r.err
}

func (r *recorded) Try(context.Context, *corev1.Pod, mark.Marks) error { return r.err }

func (r *recorded) Marks(_ context.Context, _ *corev1.Pod, marks mark.Marks) (string, error) {
	var labels map[string]string
	for _, name := range marks.Names(mark.KindLabel) {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = marks[mark.Label(name)].Text
	}
	r.labels = append(r.labels, labels)
	return "1000", r.err
}

func (r *recorded) MarksOn(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error) {
	return r.Marks(ctx, pod, marks)
}

// permits permits the pods that it has, and records those that ask.
type permits map[types.NamespacedName]bool

func (p permits) Take(pod types.NamespacedName) bool {
	permitted := p[pod]
	delete(p, pod)
	return permitted
}

func (p permits) Ask(pod types.NamespacedName) { p[pod] = true }

func reconciler(t testing.TB, pods Pods, objects ...client.Object) *Reconciler {
	t.Helper()
	counters := metrics.New(prometheus.NewRegistry())
	return New(Options{
		Reader: gather.Reader{
			Client:   fakeapi.Client(t, objects...).WithReturnManagedFields().Build(),
			Compiler: plan.NewCompiler(), Options: podview.Options{Defaults: plan.KubernetesDefaults()},
		},
		Pods: pods, Inbox: &controllers.Inbox{}, Limiter: permits{}, Problems: &problems.Marks{}, Refusals: &problems.Refusals{},
		Recorder: record.NewFakeRecorder(10), Metrics: counters, Now: time.Now,
	})
}

func reported(uid string, state v1alpha1.ProbeState) *v1alpha1.NodePodProbe {
	npp := &v1alpha1.NodePodProbe{Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{{
		Namespace: "ns", Name: "a", UID: uid,
		ProbeStates: []v1alpha1.ContainerProbeState{{Name: "web#p", State: state}},
	}}}}
	npp.Name = "node-1"
	return npp
}

func TestReconcile(t *testing.T) {
	marker, healthy := healthyMarker(), healthyLabels()
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	none := []map[string]string{nil}
	cases := map[string]struct {
		cached []client.Object
		want   []map[string]string
	}{
		"no pod":               {cached: []client.Object{marker, reported("uid-a", "Succeeded")}},
		"new state":            {cached: []client.Object{marker, pod().Build(), reported("uid-a", "Succeeded")}, want: healthy},
		"already marked":       {cached: []client.Object{marker, marked().Build(), reported("uid-a", "Succeeded")}},
		"failed":               {cached: []client.Object{marker, marked().Build(), reported("uid-a", "Failed")}, want: none},
		"state of another pod": {cached: []client.Object{marker, pod().Build(), reported("uid-b", "Succeeded")}},
		"deleted marker":       {cached: []client.Object{marked().Build(), reported("uid-a", "Succeeded")}, want: none},
		"no longer selected":   {cached: []client.Object{marker, marked().Label("app", "db").Build(), reported("uid-a", "Succeeded")}, want: none},
		"terminating":          {cached: []client.Object{marker, marked().Terminating().Build(), reported("uid-a", "Failed")}},
		"ended":                {cached: []client.Object{marker, marked().Phase("Failed").Build(), reported("uid-a", "Failed")}},
		"no report":            {cached: []client.Object{marker, marked().Build()}},
		"not planned":          {cached: []client.Object{marker, marked().Build(), planned(2, 2, "uid-b")}},
		"planned, no report":   {cached: []client.Object{marker, marked().Build(), planned(2, 2, "uid-a")}},
		"no report, no marker": {cached: []client.Object{marked().Build()}, want: none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &recorded{}
			r := reconciler(t, pods, tc.cached...)
			// The cache never has the write, so the second reconcile must remember it.
			for range 2 {
				reconcileOne(t, r, "a")
			}
			expect.Equal(t, "labels written", tc.want, pods.labels)
		})
	}
}

// The label is in the template of the pods.
func TestReconcileTakesOverMarksOfOtherOwners(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	marker := healthyMarker()
	left := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("healthy", "true").Updated("kube-controller-manager", "", entry)
	}
	shared := func() *builders.PodBuilder { return left().ManagedFields("seamark", "status", entry) }
	healthy := []mark.Key{mark.Label("healthy")}
	cases := map[string]struct {
		cached  []client.Object
		applied []map[string]string
		removed []mark.Key
	}{
		"correct mark is applied too": {
			cached:  []client.Object{marker, left().Build(), reported("uid-a", "Succeeded")},
			applied: []map[string]string{{"healthy": "true"}},
		},
		"wrong mark is removed without an apply": {
			cached:  []client.Object{marker, left().Build(), reported("uid-a", "Failed")},
			removed: healthy,
		},
		"wrong shared mark is removed from both": {
			cached:  []client.Object{marker, shared().Build(), reported("uid-a", "Failed")},
			applied: []map[string]string{nil}, removed: healthy,
		},
		"shared mark without marker": {
			cached:  []client.Object{shared().Build(), reported("uid-a", "Succeeded")},
			applied: []map[string]string{nil}, removed: healthy,
		},
		"correct shared mark":           {cached: []client.Object{marker, shared().Build(), reported("uid-a", "Succeeded")}},
		"undeclared label":              {cached: []client.Object{left().Build(), reported("uid-a", "Failed")}},
		"no report":                     {cached: []client.Object{marker, left().Build()}},
		"only the state of another pod": {cached: []client.Object{marker, left().Build(), reported("uid-b", "Failed")}},
		"ending pod":                    {cached: []client.Object{marker, left().Terminating().Build(), reported("uid-a", "Failed")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &recorded{}
			r := reconciler(t, pods, tc.cached...)
			reconcileOne(t, r, "a")
			expect.Equal(t, "labels applied", tc.applied, pods.labels)
			expect.Equal(t, "removed", tc.removed, pods.removed)
		})
	}
}

// A mark is removed right after it was set, so the cache does not have the write that shows that
// another manager owns the mark too.
func TestRemovalWaitsForTheLastWrite(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	left := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("healthy", "true").Updated("kruise-manager", "", entry)
	}
	marker := healthyMarker()
	pods := &recorded{}
	r := reconciler(t, pods, marker, left().Build(), reported("uid-a", "Succeeded"))
	pass := func() reconcile.Result { return reconcileOne(t, r, "a") }
	pass()
	cache := r.Reader.Client.(client.Client)
	expect.NoError(t, cache.Delete(t.Context(), marker))
	for range 2 {
		if result := pass(); result.RequeueAfter <= 0 || len(pods.labels) != 1 || len(pods.removed) != 0 {
			t.Fatalf("%v, applied %v, removed %v; want a requeue and only the first apply", result, pods.labels, pods.removed)
		}
	}
	marked := left().ManagedFields("seamark", "status", entry).Build()
	marked.ResourceVersion = "1000"
	r.Reader.Client = fakeapi.Client(t, marked, reported("uid-a", "Succeeded")).WithReturnManagedFields().Build()
	pass()
	if want := []mark.Key{mark.Label("healthy")}; !slices.Equal(pods.removed, want) || len(pods.labels) != 2 || len(pods.labels[1]) != 0 {
		t.Errorf("removed %v, applied %v; want %v and nothing", pods.removed, pods.labels, want)
	}
}

func TestConflictIsRequeued(t *testing.T) {
	marker := healthyMarker()
	pod := builders.Pod("ns", "a").Label("app", "game").Label("healthy", "true").
		Updated("kruise-manager", "status", `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`).Build()
	pods := &recorded{err: apply.ErrOutdated}
	r := reconciler(t, pods, marker, pod, reported("uid-a", "Failed"))
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	reconcileAgain := func(writes int) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter <= 0 {
			t.Errorf("%v, %v; want a requeue and no error", result, err)
		}
		expect.Equal(t, "writes", writes, len(pods.removed))
	}
	reconcileAgain(1)
	// As long as the cache has the same version, a write cannot succeed.
	reconcileAgain(1)
	expect.NoError(t, r.Reader.Client.(client.Client).Update(t.Context(), pod.DeepCopy()))
	reconcileAgain(2)
	r.forget(key)
	if r.outdated.Len() > 0 {
		t.Error("the outdated version of a deleted pod is kept")
	}
}

func TestReconcileErrors(t *testing.T) {
	marker := healthyMarker()
	refused := errors.New("refused")
	for name, tc := range map[string]struct{ err, want error }{
		"pod is gone": {err: apply.ErrGone},
		"other error": {err: refused, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{err: tc.err}, marker,
				builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", "Succeeded"))
			key := types.NamespacedName{Namespace: "ns", Name: "a"}
			r.noteReported(key, time.Unix(1, 0))
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if _, kept := r.reportedAt.Take(key); kept != (tc.want != nil) {
				t.Errorf("time of the report kept: %t, want it only if the write is retried", kept)
			}
		})
	}
}
