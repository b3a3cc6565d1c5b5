// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualpod

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

const handed = `[{"name":"Idle","containerName":"main","probe":{"exec":{"command":["/probe"]}},"podConditionType":"game.io/idle"}]`

// recorded records the annotations that are written.
type recorded struct {
	written []serverless.Annotations
	err     error
}

func (r *recorded) Handover(_ context.Context, _ *corev1.Pod, annotations serverless.Annotations) (string, error) {
	r.written = append(r.written, annotations)
	return "1000", r.err
}

func reconciler(t *testing.T, pods Pods, objects ...client.Object) *Reconciler {
	t.Helper()
	return New(Options{
		Reader: gather.Reader{
			Client:   fakeapi.Client(t, objects...).Build(),
			Compiler: plan.NewCompiler(), Options: podview.Options{Defaults: plan.KubernetesDefaults(), Serverless: true},
		},
		Pods: pods,
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
		"no pod":                                {cached: []client.Object{marker(), virtual}},
		"missed by the webhook":                 {cached: []client.Object{marker(), virtual, pod().Build()}, want: set},
		"not initialized":                       {cached: []client.Object{marker(), virtual, pod().Initialized("False").Build()}, want: set},
		"correct":                               {cached: []client.Object{marker(), virtual, annotated(handed).Build()}},
		"outdated":                              {cached: []client.Object{marker(), virtual, annotated("[]").Build()}, want: set},
		"deleted marker":                        {cached: []client.Object{virtual, annotated(handed).Build()}, want: off},
		"no longer selected":                    {cached: []client.Object{marker(), virtual, annotated(handed).Label("app", "db").Build()}, want: off},
		"on a node with kubelet":                {cached: []client.Object{marker(), kubelet, annotated(handed).Build()}, want: off},
		"on a node with kubelet, not annotated": {cached: []client.Object{marker(), kubelet, pod().Build()}},
		"on an unknown node":                    {cached: []client.Object{annotated(handed).Build()}},
		"unbound, correct":                      {cached: []client.Object{marker(), annotated(handed).Node("").Build()}},
		"unbound, outdated":                     {cached: []client.Object{marker(), annotated("[]").Node("").Build()}, want: set},
		"unbound, deleted marker":               {cached: []client.Object{annotated(handed).Node("").Build()}, want: off},
		"unbound, not annotated":                {cached: []client.Object{marker(), pod().Node("").Build()}},
		"terminating":                           {cached: []client.Object{virtual, annotated(handed).Terminating().Build()}},
		"ended":                                 {cached: []client.Object{virtual, annotated(handed).Phase("Succeeded").Build()}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := &recorded{}
			r := reconciler(t, pods, tc.cached...)
			// The cache never has the write, so the second reconcile must remember it.
			for range 2 {
				if _, err := r.Reconcile(t.Context(), request()); err != nil {
					t.Fatal(err)
				}
			}
			expect.Equal(t, "written", tc.want, pods.written)
		})
	}
}

func TestFailedWrite(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil)
	cases := map[string]struct {
		err             error
		fails, terminal bool
	}{
		"gone":        {err: apply.ErrGone},
		"too large":   {err: invalid, fails: true, terminal: true},
		"other error": {err: errors.New("no connection"), fails: true},
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

// The cache may get a node after its pods, even if both exist at the start.
func TestNodeAtTheStartEnqueuesItsPods(t *testing.T) {
	pod, virtual := builders.Pod("ns", "a").Node("node-1").Build(), node("virtual-kubelet")
	r := reconciler(t, &recorded{}, marker())
	r.Reader.Client = fake.NewClientBuilder().WithObjects(pod, virtual).
		WithIndex(pod, gather.NodeNameField, func(client.Object) []string { return []string{"node-1"} }).Build()
	q := fakeapi.Queue(t)
	found := &metav1.PartialObjectMetadata{ObjectMeta: virtual.ObjectMeta}
	r.nodeEvents().Create(t.Context(), event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: found, IsInInitialList: true}, q)
	expect.Equal(t, "pods enqueued", 1, q.Len())
}
