// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// imagePullJob says which nodes do not have the image.
func (w *workload) imagePullJob(job *v1alpha1.ImagePullJob) {
	if failed := job.Status.FailedNodes; len(failed) > 0 {
		w.problem("Failed nodes", text.List(failed, text.MaxNames), w.describe(), job.Status.Message)
	}
	if job.Status.CompletionTime != nil || w.unread(permission.Nodes, "Nodes", "the nodes") || w.unread(permission.Pods, "Pods", "the pods of the namespace") {
		return
	}
	selected, err := imagepull.Nodes(job, allowedNodes(), w.given.Nodes, w.given.Pods)
	if err != nil {
		w.problem("Nodes", err.Error(), w.describe())
		return
	}
	nodes := make([]*corev1.Node, len(selected))
	for i, node := range selected {
		nodes[i] = trim.NodeWithImages(node)
	}
	plan := imagepull.New(imagepull.Input{Job: job, Nodes: nodes, Pods: w.pods, Progress: imagepull.Restore(job, nodes), Now: w.in.Now})
	message := fmt.Sprintf("%d of the nodes are selected; by default, none of the control plane is", len(nodes))
	switch {
	case len(nodes) == 0:
		w.problem("Nodes", message, w.describe())
		return
	case len(plan.Start) > 0:
		var names []string
		for _, start := range plan.Start {
			names = append(names, start.Node)
		}
		w.add(Step{
			Title: "Nodes", Verdict: Waiting,
			Text: fmt.Sprintf("%d of %d nodes wait for their turn: %s", len(names), len(nodes), text.List(names, text.MaxNames)),
			Evidence: []string{fmt.Sprintf(
				"spec.parallelism permits %d pulls at the same time; imagePull.total and imagePull.perNode of seamark-workloads limit all jobs",
				planning.Parallelism(ptr.Deref(job.Spec.Parallelism, intstr.FromInt32(1)), len(nodes)),
			)},
			Next: w.describe(),
		})
	default:
		w.add(Step{Title: "Nodes", Verdict: OK, Text: message})
	}
	var unusable []string
	for _, node := range nodes {
		if !imagepull.Usable(node) {
			unusable = append(unusable, node.Name)
		}
	}
	if len(unusable) > 0 {
		w.add(Step{
			Title: "Nodes that cannot pull", Verdict: Waiting,
			Text: "not ready, or with DiskPressure: " + text.List(unusable, text.MaxNames),
			Next: "kubectl get nodes",
		})
	}
	w.unfinished(func(pod *corev1.Pod) (string, bool) {
		if why, wrong := w.stateOf(pod); wrong {
			return why, wrong
		}
		return fmt.Sprintf("pulls for %s", w.age(pod.CreationTimestamp.Time)), false
	}, "have ended")
}
