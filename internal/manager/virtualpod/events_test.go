// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualpod

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

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
