// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// NodeLabel is a label by which nodes without agents are recognized.
type NodeLabel struct {
	// Key is the key of the label.
	Key string
	// Values are the values that identify such nodes. If it is empty, any value does.
	Values []string
}

// matches reports whether the labels of a node contain the label.
func (l NodeLabel) matches(nodeLabels map[string]string) bool {
	value, found := nodeLabels[l.Key]
	return found && (len(l.Values) == 0 || slices.Contains(l.Values, value))
}

// AgentlessLabels returns the labels of nodes that cannot run an agent, because no machine that
// runs DaemonSets is behind them. The node affinity of the DaemonSet excludes the same labels.
func AgentlessLabels() []NodeLabel {
	return []NodeLabel{
		// Virtual Kubelet and the providers that keep its label: Azure Container Instances,
		// Alibaba Cloud ECI and ACS, Huawei CCI, Volcengine VCI, interLink. KWOK simulates nodes.
		{Key: v1alpha1.NodeTypeLabel, Values: []string{v1alpha1.NodeTypeVirtualKubelet, "kwok"}},
		// AWS Fargate: the machine of a pod runs only this pod.
		{Key: "eks.amazonaws.com/compute-type", Values: []string{"fargate"}},
		// Liqo.
		{Key: "liqo.io/type", Values: []string{"virtual-node"}},
		// Tencent Cloud super nodes.
		{Key: corev1.LabelInstanceTypeStable, Values: []string{"eklet"}},
		// Oracle Cloud.
		{Key: "node-role.kubernetes.io/virtual-node"},
		// Admiralty, and other providers that are built with the library of Virtual Kubelet.
		{Key: "virtual-kubelet.io/provider"},
	}
}

// IsVirtual reports whether the labels are those of a virtual node, whose provider may read
// annotations.
func IsVirtual(nodeLabels map[string]string) bool {
	return nodeLabels[v1alpha1.NodeTypeLabel] == v1alpha1.NodeTypeVirtualKubelet
}

// HasAgent reports whether an agent can run on a node with the labels. It cannot run on virtual
// nodes.
func HasAgent(nodeLabels map[string]string) bool {
	return !slices.ContainsFunc(AgentlessLabels(), func(l NodeLabel) bool { return l.matches(nodeLabels) })
}
