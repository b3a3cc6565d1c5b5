// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package serverless

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// temporary is the prefix of the taints that Kubernetes sets for conditions of a node, such as
// node.kubernetes.io/not-ready. They may disappear before the pod is scheduled.
const temporary = "node.kubernetes.io/"

// MayRunOn reports whether the pod is bound to one of the virtual nodes or may be bound to one:
// its node selector and required node affinity match the node, and it tolerates the node's
// taints. It ignores resources and temporary taints, because they change.
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

// Admits reports whether the node selector and required node affinity of the pod match the node,
// and the pod tolerates the node's taints. It ignores resources and temporary taints.
func Admits(node *corev1.Node, pod *corev1.Pod) bool {
	return admits(node, nodeaffinity.GetRequiredNodeAffinity(pod), pod.Spec.Tolerations)
}

func admits(node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity, tolerations []corev1.Toleration) bool {
	// An invalid affinity matches no node.
	matches, err := affinity.Match(node)
	if err != nil || !matches {
		return false
	}
	_, untolerated := schedulinghelpers.FindMatchingUntoleratedTaint(
		logr.Discard(), node.Spec.Taints, tolerations, isPermanent, true)
	return !untolerated
}

// isPermanent reports whether the taint always prevents pods without a toleration.
func isPermanent(taint *corev1.Taint) bool {
	return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) &&
		!strings.HasPrefix(taint.Key, temporary)
}
