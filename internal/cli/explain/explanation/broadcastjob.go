// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// absent says why a job goes on without a node.
func (w *workload) absent(fit *nodefit.Template, node *corev1.Node) string {
	if at, unready := broadcastjob.AbsentAt(fit, node); !unready || w.in.Now.Before(at) {
		return ""
	}
	return fmt.Sprintf("the job goes on without nodes that are not ready for %s", broadcastjob.Patience)
}

// broadcastJob says which nodes are not done.
func (w *workload) broadcastJob(job *v1alpha1.BroadcastJob) {
	if w.unreadPods() {
		return
	}
	if found, known := w.place(&job.Spec.Template.Spec, w.absent); known && !broadcastjob.Ended(job) {
		w.nodes(found, w.nextNodes(job))
	}
	w.unfinished(w.jobPod, "have succeeded")
}

// nextNodes says when nodes without a pod get one.
func (w *workload) nextNodes(job *v1alpha1.BroadcastJob) string {
	plan := broadcastjob.New(broadcastjob.Input{Job: job, Nodes: w.given.Nodes, Pods: slices.Clone(w.pods), Now: w.in.Now})
	limit := broadcastjob.Parallelism(job, int(plan.Status.Desired))
	switch {
	case len(plan.Creates) > 0:
		return fmt.Sprintf("the next %d get one now", len(plan.Creates))
	case plan.Status.Phase == v1alpha1.BroadcastJobPaused:
		return "no pod is created while the job is paused"
	case limit == 0:
		return "spec.parallelism is 0"
	}
	return fmt.Sprintf("spec.parallelism permits pods on %d nodes at the same time, and the next ones follow when they have ended", limit)
}

// jobPod says why a pod of a job has not succeeded.
func (w *workload) jobPod(pod *corev1.Pod) (string, bool) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return "", false
	}
	if why, wrong := w.stateOf(pod); why != "" {
		return why, wrong
	}
	return "runs", false
}
