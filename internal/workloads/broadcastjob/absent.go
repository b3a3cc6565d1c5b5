// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// Patience is how long a job waits for a node that is not ready.
const Patience = 5 * time.Minute

// AbsentAt returns from when on a job goes on without a node on which its pod has not started, and false if the node is
// ready. The time is that of a condition of the node, so that a restart of the program does not change it.
func AbsentAt(fit *nodefit.Template, node *corev1.Node) (time.Time, bool) {
	since, unready := fit.Unready(node)
	return since.Add(Patience), unready
}

// waits reports whether no container of a pod has started, except for init containers.
func waits(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending || pod.Status.Phase == ""
}

// lost reports whether the job goes on without a node. If it does later, it plans again then.
func (p *planner) lost(fit *nodefit.Template, node *corev1.Node) bool {
	at, unready := AbsentAt(fit, node)
	if unready && p.Now.Before(at) {
		p.Wake(at)
		return false
	}
	return unready
}

// leave goes on without a node. Its pod is deleted, so that the node does not start it when it returns, at the same time as
// others or after the job has completed. The API server has such a pod until the node returns, so it does not hold a place.
func (p *planner) leave(node *corev1.Node, pod *corev1.Pod, fits nodefit.Fit) {
	if pod != nil && pod.DeletionTimestamp != nil {
		p.stranded++
	}
	if fits == nodefit.No {
		return
	}
	p.absent = append(p.absent, node.Name)
	if pod != nil {
		p.delete(pod, "NodeNotReady")
	}
}
