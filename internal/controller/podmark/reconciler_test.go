// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/mark"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// recorded are pods that only remember the labels that were written to them.
type recorded struct {
	labels []map[string]string
	err    error
}

func (r *recorded) Marks(_ context.Context, _ *corev1.Pod, marks mark.Marks) (string, error) {
	r.labels = append(r.labels, marks.Labels)
	return "1000", r.err
}

func reconciler(t *testing.T, pods Pods, cached ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	counters, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Cache: fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(cached...).Build(),
		Pods:  pods, Compiler: plan.NewCompiler(), Defaults: plan.KubernetesDefaults(), Metrics: counters, Now: time.Now,
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
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	marked := func() *builders.PodBuilder {
		return pod().Label("healthy", "true").ManagedFields("seamark", "status", entry)
	}
	healthy := []map[string]string{{"healthy": "true"}}
	none := []map[string]string{nil}
	cases := map[string]struct {
		cached []client.Object
		want   []map[string]string
	}{
		"no pod":                    {cached: []client.Object{marker, reported("uid-a", "Succeeded")}},
		"a new state":               {cached: []client.Object{marker, pod().Build(), reported("uid-a", "Succeeded")}, want: healthy},
		"marked already":            {cached: []client.Object{marker, marked().Build(), reported("uid-a", "Succeeded")}},
		"failed":                    {cached: []client.Object{marker, marked().Build(), reported("uid-a", "Failed")}, want: none},
		"of another pod":            {cached: []client.Object{marker, pod().Build(), reported("uid-b", "Succeeded")}},
		"no marker any more":        {cached: []client.Object{marked().Build(), reported("uid-a", "Succeeded")}, want: none},
		"not selected any more":     {cached: []client.Object{marker, marked().Label("app", "db").Build(), reported("uid-a", "Succeeded")}, want: none},
		"terminating":               {cached: []client.Object{marker, marked().Terminating().Build(), reported("uid-a", "Failed")}},
		"ended":                     {cached: []client.Object{marker, marked().Phase("Failed").Build(), reported("uid-a", "Failed")}},
		"no report at all":          {cached: []client.Object{marker, marked().Build()}},
		"neither report nor marker": {cached: []client.Object{marked().Build()}, want: none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &recorded{}
			r := reconciler(t, pods, tc.cached...)
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}
			// The cache never shows the write, so that a second look must remember it.
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, pods.labels); diff != "" {
				t.Errorf("labels written (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReconcileErrors(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "healthy", "true")).Build()
	refused := errors.New("refused")
	for name, tc := range map[string]struct{ err, want error }{
		"the pod is gone": {err: apply.ErrGone},
		"another":         {err: refused, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{err: tc.err}, marker,
				builders.Pod("ns", "a").Label("app", "game").Build(), reported("uid-a", "Succeeded"))
			key := types.NamespacedName{Namespace: "ns", Name: "a"}
			r.arrivals.note(key, time.Unix(1, 0))
			_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if _, kept := r.arrivals.take(key); kept != (tc.want != nil) {
				t.Errorf("arrival kept: %t, want it only where the write is tried again", kept)
			}
		})
	}
}
