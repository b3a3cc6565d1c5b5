// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
	"github.com/seamark-dev/seamark/test/builders"
)

const handed = `[{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/idle"}]`

// recorded are pods that only remember what was written to them.
type recorded struct {
	written []serverless.Annotations
	err     error
}

func (r *recorded) Handover(_ context.Context, _ *corev1.Pod, annotations serverless.Annotations) (string, error) {
	r.written = append(r.written, annotations)
	return "1000", r.err
}

func reconciler(t *testing.T, pods Pods, cached ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return New(Options{
		Cache: fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached...).Build(),
		Pods:  pods, Compiler: plan.NewCompiler(), Defaults: plan.KubernetesDefaults(),
	})
}

func request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}
}

func marker() *v1alpha1.PodProbeMarker {
	return builders.Marker("ns", "web").Probe(builders.Probe("Idle").Condition("game.io/idle")).Build()
}

func node(kind string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"type": kind}}}
}

func TestReconcile(t *testing.T) {
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	annotated := func(probes string) *builders.PodBuilder {
		return pod().Annotation("kruise.io/podprobe", probes).Annotation("kruise.io/podprobemarker-list", "web")
	}
	virtual, kubelet := node("virtual-kubelet"), node("")
	set := []serverless.Annotations{{Probes: handed, Markers: "web"}}
	off := []serverless.Annotations{{}}
	cases := map[string]struct {
		cached []client.Object
		want   []serverless.Annotations
	}{
		"no pod":                           {cached: []client.Object{marker(), virtual}},
		"missed by the webhook":            {cached: []client.Object{marker(), virtual, pod().Build()}, want: set},
		"before its containers start":      {cached: []client.Object{marker(), virtual, pod().Initialized("False").Build()}, want: set},
		"right already":                    {cached: []client.Object{marker(), virtual, annotated(handed).Build()}},
		"of an older marker":               {cached: []client.Object{marker(), virtual, annotated("[]").Build()}, want: set},
		"no marker any more":               {cached: []client.Object{virtual, annotated(handed).Build()}, want: off},
		"not selected any more":            {cached: []client.Object{marker(), virtual, annotated(handed).Label("app", "db").Build()}, want: off},
		"on a node with kubelet":           {cached: []client.Object{marker(), kubelet, annotated(handed).Build()}, want: off},
		"never annotated there":            {cached: []client.Object{marker(), kubelet, pod().Build()}},
		"on a node that isn't known":       {cached: []client.Object{annotated(handed).Build()}},
		"waiting, and right":               {cached: []client.Object{marker(), annotated(handed).Node("").Build()}},
		"waiting, of an older marker":      {cached: []client.Object{marker(), annotated("[]").Node("").Build()}, want: set},
		"waiting, with no marker any more": {cached: []client.Object{annotated(handed).Node("").Build()}, want: off},
		"waiting, passed over":             {cached: []client.Object{marker(), pod().Node("").Build()}},
		"terminating":                      {cached: []client.Object{virtual, annotated(handed).Terminating().Build()}},
		"ended":                            {cached: []client.Object{virtual, annotated(handed).Phase("Succeeded").Build()}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &recorded{}
			r := reconciler(t, pods, tc.cached...)
			// The cache doesn't show the write: a second look writes nothing more.
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, pods.written); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteThatFails(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
	cases := map[string]struct {
		err             error
		fails, terminal bool
	}{
		"gone":      {err: apply.ErrGone},
		"too large": {err: invalid, fails: true, terminal: true},
		"anything":  {err: errors.New("no connection"), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := reconciler(t, &recorded{err: tc.err}, marker(), node("virtual-kubelet"), builders.Pod("ns", "a").Label("app", "game").Build())
			_, err := r.Reconcile(t.Context(), request())
			if fails, terminal := err != nil, errors.Is(err, reconcile.TerminalError(nil)); fails != tc.fails || terminal != tc.terminal {
				t.Errorf("error %v: fails %t, terminal %t; want %t, %t", err, fails, terminal, tc.fails, tc.terminal)
			}
		})
	}
}
