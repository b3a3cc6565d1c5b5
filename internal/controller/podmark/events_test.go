// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podmark

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/view/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

func TestNewPods(t *testing.T) {
	const entry = `{"f:metadata":{"f:labels":{"f:healthy":{}}}}`
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a").Label("app", "game") }
	cases := map[string]struct {
		pod     *corev1.Pod
		initial bool
		want    bool
	}{
		"exists at the start":         {pod: pod().Build(), initial: true},
		"exists at the start, marked": {pod: pod().ManagedFields("seamark", "status", entry).Build(), initial: true, want: true},
		"not bound":                   {pod: pod().Node("").Build()},
		"possibly already reported":   {pod: pod().Build(), want: true},
		"already marked":              {pod: pod().ManagedFields("seamark", "status", entry).Build(), want: true},
		"already ended":               {pod: pod().Phase(corev1.PodFailed).Build()},
		"not initialized":             {pod: pod().Initialized(corev1.ConditionFalse).Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			created := event.TypedCreateEvent[*corev1.Pod]{Object: tc.pod, IsInInitialList: tc.initial}
			reconciler(t, &recorded{}).podEvents().Create(t.Context(), created, q)
			if got := q.Len() > 0; got != tc.want {
				t.Errorf("enqueued: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNewNodes(t *testing.T) {
	pod := builders.Pod("ns", "a").Node("node-1").Build()
	cases := map[string]struct {
		kind string
		want int
	}{
		"virtual node": {kind: "virtual-kubelet", want: 1},
		"kubelet node": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			r := reconciler(t, &recorded{})
			r.lookup.Reader.Client = fakeapi.Client(t, pod).
				WithIndex(pod, gather.NodeNameField, func(client.Object) []string { return []string{"node-1"} }).Build()
			node := gather.NewNode()
			node.Name, node.Labels = "node-1", map[string]string{v1alpha1.NodeTypeLabel: tc.kind}
			r.nodeEvents().Create(t.Context(), event.TypedCreateEvent[*metav1.PartialObjectMetadata]{Object: node, IsInInitialList: true}, q)
			if q.Len() != tc.want {
				t.Errorf("%d pods enqueued, want %d", q.Len(), tc.want)
			}
		})
	}
}
