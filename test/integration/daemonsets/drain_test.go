// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// testDrain evicts the pod of a cordoned node, as kubectl drain does: the node gets another one at once. A selector of pods
// leaves out the pods of DaemonSets.
func testDrain(t *testing.T) {
	w := newWorld(t, 2).create(func(*v1alpha1.DaemonSet) {})
	w.images("agent:1", "agent:1")
	w.editNode(0, func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	})
	pod := w.on(0)[0]
	others, err := labels.Parse("seamark.dev/workload!=DaemonSet")
	expect.NoError(t, err)
	if others.Matches(labels.Set(pod.Labels)) {
		t.Errorf("the selector %s matches the labels %v", others, pod.Labels)
	}
	expect.NoError(t, w.Client.SubResource("eviction").Create(t.Context(), &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}))
	w.until("the cordoned node has another pod", func() error {
		found := w.on(0)
		return await.ErrorIf(len(found) != 1 || found[0].UID == pod.UID || found[0].DeletionTimestamp != nil, "%d pods", len(found))
	})
}
