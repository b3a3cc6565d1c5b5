// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
)

// agentAccount is the service account of the agents.
const agentAccount = "seamark-agent"

// IsAgent reports whether the pod is one of the agent, which runs in the namespace. It compares the service
// account: whoever can create a pod with it can report any state anyway, while any tenant can set labels.
func IsAgent(pod *corev1.Pod, namespace string) bool {
	return namespace != "" && pod.Namespace == namespace && pod.Spec.ServiceAccountName == agentAccount
}

// keepAgent adds to the trimmed pod of an agent what AgentReadiness reads.
func keepAgent(trimmed, pod *corev1.Pod) {
	trimmed.Spec.ServiceAccountName = agentAccount
	trimmed.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			ready := corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
			// The others may be shared with other pods.
			trimmed.Status.Conditions = append(slices.Clip(trimmed.Status.Conditions), ready)
		}
	}
}

// AgentReadiness returns what is known about a pod of the agent.
func AgentReadiness(pod *corev1.Pod) staleness.Agent {
	agent := staleness.Agent{Since: pod.CreationTimestamp.Time}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			agent.Ready = c.Status == corev1.ConditionTrue
			if !c.LastTransitionTime.IsZero() {
				agent.Since = c.LastTransitionTime.Time
			}
		}
	}
	if pod.DeletionTimestamp != nil {
		// It is the end of the grace period.
		agent.Deleted = pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	return agent
}

// NodeReadiness returns what is known about a Node, or nil if there is none.
func NodeReadiness(node *corev1.Node) *staleness.Node {
	if node == nil {
		return nil
	}
	ready := &staleness.Node{Agentless: !serverless.HasAgent(node.Labels)}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			ready.Ready, ready.Since = c.Status, c.LastTransitionTime.Time
		}
	}
	return ready
}
