// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// passing begins the keys of the taints that Kubernetes sets for a node's condition, such
// as node.kubernetes.io/not-ready. They come and go while a pod waits to be scheduled.
const passing = "node.kubernetes.io/"

// IsVirtual tells whether labels are those of a node that no kubelet runs.
func IsVirtual(nodeLabels map[string]string) bool {
	return nodeLabels[v1alpha1.NodeTypeLabel] == v1alpha1.NodeTypeVirtualKubelet
}

// MayRunOn tells whether the pod is bound to one of the virtual nodes, or may be yet: its
// node selector and required node affinity pick one, whose taints it tolerates. Resources
// and the taints of a node's condition are passed over, since they change.
func MayRunOn(pod *corev1.Pod, virtual []corev1.Node) bool {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for i := range virtual {
		node := &virtual[i]
		if !IsVirtual(node.Labels) {
			continue
		}
		if pod.Spec.NodeName != "" {
			if pod.Spec.NodeName == node.Name {
				return true
			}
			continue
		}
		if admits(node, affinity, pod.Spec.Tolerations) {
			return true
		}
	}
	return false
}

func admits(node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity, tolerations []corev1.Toleration) bool {
	// An affinity that can't be parsed picks no node.
	picks, err := affinity.Match(node)
	if err != nil || !picks {
		return false
	}
	_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(
		logr.Discard(), node.Spec.Taints, tolerations, keepsOut, true)
	return !repelled
}

// keepsOut tells whether the taint keeps pods away for good.
func keepsOut(taint *corev1.Taint) bool {
	return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) &&
		!strings.HasPrefix(taint.Key, passing)
}
