// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
)

// Trimmed pods and Nodes, however often they are trimmed, are the same evidence as whole ones.
func TestTrimKeepsEvidence(t *testing.T) {
	since, deleted := metav1.NewTime(created().Add(time.Minute)), metav1.NewTime(created().Add(time.Hour))
	pod := func(namespace, account string) *corev1.Pod {
		pod := builders.Pod(namespace, "agent").Label("app.kubernetes.io/component", "agent").
			Condition(corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}).Build()
		pod.Spec.ServiceAccountName = account
		pod.CreationTimestamp, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = created(), &deleted, new(int64(10))
		return pod
	}
	trimmer := podview.NewPodTrimmer(podview.Options{}).WithAgents("seamark-system")
	agent := pod("seamark-system", "seamark-agent")
	want := staleness.Agent{Ready: true, Since: since.Time, Deleted: deleted.Add(-10 * time.Second)}
	for name, got := range map[string]*corev1.Pod{"whole": agent, "trimmed": trimmer.Trim(agent), "trimmed twice": trimmer.Trim(trimmer.Trim(agent))} {
		if diff := cmp.Diff(want, podview.AgentReadiness(got)); diff != "" || !podview.IsAgent(got, "seamark-system") {
			t.Errorf("%s agent (-want +got):\n%s", name, diff)
		}
	}
	if got := trimmer.Trim(pod("seamark-system", "other")); len(got.Status.Conditions) > 1 {
		t.Errorf("conditions of another pod: %v", got.Status.Conditions)
	}
	for name, other := range map[string]*corev1.Pod{"tenant": pod("tenant", "seamark-agent"), "other account": pod("seamark-system", "default")} {
		if podview.IsAgent(other, "seamark-system") {
			t.Errorf("a pod of a %s is an agent", name)
		}
	}
	if podview.IsAgent(pod("", "seamark-agent"), "") {
		t.Error("a pod is an agent although the namespace of the agents is not known")
	}

	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "zone": "z"}},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since, LastHeartbeatTime: deleted, Message: "m"},
		}},
	}
	trimmed := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since},
		}},
	}
	got, err := podview.TransformNode(node)
	if diff := cmp.Diff(any(trimmed), got); diff != "" || err != nil {
		t.Errorf("trimmed Node, error %v (-want +got):\n%s", err, diff)
	}
	health := &staleness.Node{Ready: corev1.ConditionUnknown, Since: since.Time, Agentless: true}
	if diff := cmp.Diff(health, podview.NodeReadiness(trimmed)); diff != "" || podview.NodeReadiness(nil) != nil {
		t.Errorf("health (-want +got):\n%s", diff)
	}
}
