// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/model"
)

// fitting returns the pods of each node that fits, by name.
func (p *planner) fitting(view *model.State) map[string][]*corev1.Pod {
	set := setOf(view)
	pods := map[string][]*corev1.Pod{}
	for name, node := range nodesOf(set) {
		if fit, _ := p.slots.FitOf(set.UID, node); fit == nodefit.Yes {
			pods[name] = nil
		}
	}
	for _, pod := range view.Pods {
		if _, fits := pods[nodefit.Target(pod)]; fits && metav1.IsControlledBy(pod, set) && pod.Labels["app"] == "agent" {
			pods[nodefit.Target(pod)] = append(pods[nodefit.Target(pod)], pod)
		}
	}
	return pods
}

// budgetIsKept checks that a step that takes down pods of old revisions that serve leaves as many nodes with a pod that
// serves as the budget demands: without surge, all but maxUnavailable of those that fit and are not exempt, and with surge
// each one from which the step deletes a pod.
func (p *planner) budgetIsKept(view *model.State, progress *model.Step) error {
	set := setOf(view)
	down, updated := map[types.UID]bool{}, map[types.UID]bool{}
	var nodes []string
	update := func(pod *corev1.Pod) {
		if updated[pod.UID] = true; model.Serving(pod) {
			down[pod.UID] = true
			nodes = append(nodes, nodefit.Target(pod))
		}
	}
	for _, d := range progress.Deletes {
		if d.Reason == "Update" {
			update(d.Pod)
		}
	}
	for i := range progress.Patches {
		if patch := &progress.Patches[i]; len(patch.Images) > 0 {
			update(patch.Pod)
		}
	}
	if len(down) == 0 {
		return nil
	}
	pods, minReady := p.fitting(view), time.Duration(set.Spec.MinReadySeconds)*time.Second
	served := func(node string) bool {
		return slices.ContainsFunc(pods[node], func(pod *corev1.Pod) bool {
			available, _ := planning.Available(pod, minReady, view.Now)
			return model.Serving(pod) && available && !down[pod.UID]
		})
	}
	if rolling(set).MaxSurge != nil {
		for _, node := range nodes {
			if !served(node) {
				return fmt.Errorf("takes down the pod of node %s although no other serves", node)
			}
		}
		return nil
	}
	if nodes = slices.DeleteFunc(nodes, served); len(nodes) == 0 {
		return nil // A surge that a change of the type ended.
	}
	budget, err := intstr.GetScaledValueFromIntOrPercent(rolling(set).MaxUnavailable, len(pods), true)
	if err != nil {
		return err
	}
	unserved, latest := 0, setOf(&model.State{Set: progress.Status(nil)}).Status.DaemonSetHash
	for node := range pods {
		// An old pod that does not serve may be replaced whatever is unavailable, and does not count before its update.
		old := slices.ContainsFunc(pods[node], func(pod *corev1.Pod) bool {
			return planning.Active(pod) && !model.Serving(pod) && !updated[pod.UID] && !inplace.Begun(pod) &&
				pod.Labels["controller-revision-hash"] != latest
		})
		exempt := set.Annotations[v1alpha1.ExemptUnreachableNodesKey] == "true" && unreachable(nodesOf(set)[node])
		if !served(node) && !exempt && (!old || slices.Contains(nodes, node)) {
			unserved++
		}
	}
	if unserved > max(budget, 1) {
		return fmt.Errorf("takes down pods of %v, so that %d of %d nodes have none that serves, want at most %d", nodes, unserved, len(pods), budget)
	}
	return nil
}

func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// partitionIsKept checks that a step does not update more nodes than the partition and the selector permit.
func (p *planner) partitionIsKept(view *model.State, progress *model.Step) error {
	set := setOf(view)
	update := rolling(set)
	for i := range progress.Patches {
		patch := &progress.Patches[i]
		if len(patch.Images) == 0 || patch.Reason == "NextBatch" {
			continue
		}
		node := nodesOf(set)[nodefit.Target(patch.Pod)]
		if node == nil {
			continue // It was deleted since.
		}
		if _, reached := p.slots.FitOf(set.UID, node); !reached && strings.HasPrefix(patch.Reason, "Updating") {
			return fmt.Errorf("updates pod %s, whose node the selector does not match", patch.Pod.Name)
		}
	}
	if update.Paused != nil && *update.Paused || set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType {
		for _, d := range progress.Deletes {
			replaced := slices.ContainsFunc(view.Pods, func(pod *corev1.Pod) bool {
				return pod.UID != d.Pod.UID && nodefit.Target(pod) == nodefit.Target(d.Pod) && metav1.IsControlledBy(pod, set)
			})
			if d.Reason == "Update" && !replaced && model.Serving(d.Pod) {
				return fmt.Errorf("updates pod %s although the update is stopped", d.Pod.Name)
			}
		}
	}
	return nil
}

// createsWhereOneFits checks that a step creates pods only on nodes that fit, and no second one except for surge.
func (p *planner) createsWhereOneFits(view *model.State, progress *model.Step) error {
	pods := p.fitting(view)
	for _, pod := range progress.Creates {
		node := nodefit.Target(pod)
		existing, fits := pods[node]
		existing = slices.DeleteFunc(slices.Clone(existing), func(pod *corev1.Pod) bool {
			return planning.Finished(pod) && !planning.Terminating(pod)
		})
		if !fits || len(existing) > 0 && rolling(setOf(view)).MaxSurge == nil || len(existing) > 1 {
			return fmt.Errorf("creates pod %s on node %s, which fits: %t, and has %d pods\n%s", pod.Name, node, fits, len(existing), model.Describe(view))
		}
	}
	return nil
}

// exactAtRest checks that each node that fits has one pod that serves, and others have none that they must not have.
func (p *planner) exactAtRest(view *model.State) error {
	set := setOf(view)
	scale := set.Spec.ScaleStrategy
	old, missing := 0, 0
	pods := p.fitting(view)
	for node, on := range pods {
		if len(on) == 0 && scale != nil && scale.PartitionedScaling {
			missing++
			continue
		}
		if len(on) != 1 || !model.Serving(on[0]) {
			return fmt.Errorf("node %s has %d pods", node, len(on))
		}
		if on[0].Labels["controller-revision-hash"] != set.Status.DaemonSetHash {
			old++
		}
	}
	partition := 0
	if rolling(set).Partition != nil {
		partition, _ = intstr.GetScaledValueFromIntOrPercent(rolling(set).Partition, len(pods), true)
	}
	if missing+old > partition && missing > 0 {
		return fmt.Errorf("%d nodes have no pod, and %d an old one: the partition is %d", missing, old, partition)
	}
	stopped := set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType || rolling(set).Paused != nil && *rolling(set).Paused ||
		rolling(set).Selector != nil
	if old > partition && !stopped {
		return fmt.Errorf("%d nodes have an old pod, want at most %d", old, partition)
	}
	for _, pod := range view.Pods {
		node := nodesOf(set)[nodefit.Target(pod)]
		if _, fits := pods[nodefit.Target(pod)]; fits || !metav1.IsControlledBy(pod, set) {
			continue
		}
		if node == nil {
			return fmt.Errorf("pod %s remains, whose node is gone", pod.Name)
		}
		if fit, _ := p.slots.FitOf(set.UID, node); fit == nodefit.No {
			return fmt.Errorf("pod %s remains on node %s, which does not fit", pod.Name, node.Name)
		}
	}
	s := set.Status
	if int(s.DesiredNumberScheduled) != len(pods) || int(s.NumberAvailable) != len(pods)-missing || int(s.UpdatedNumberScheduled) != len(pods)-missing-old {
		return fmt.Errorf("status is %+v with %d nodes, %d old pods and %d missing", s, len(pods), old, missing)
	}
	return nil
}
