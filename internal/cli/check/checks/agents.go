// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// agents checks the DaemonSet.
func (f *Facts) agents() []Result {
	const name = "agents"
	if f.DaemonSets.Err != nil {
		return unreadable(name, f.DaemonSets.Err)
	}
	set := named(f.DaemonSets.Value, agentName)
	if set == nil {
		return failed(name, install, "namespace %s has no DaemonSet %s", f.Namespace, agentName)
	}
	status := set.Status
	ready := fmt.Sprintf("%d of %s ready", status.NumberReady, text.Count(int(status.DesiredNumberScheduled), "agent"))
	switch {
	case status.DesiredNumberScheduled == 0:
		return failed(name, f.kubectl("get daemonset %s -o yaml", agentName), "no node matches the node selector and affinity of the DaemonSet")
	case status.NumberReady < status.DesiredNumberScheduled:
		return failed(name, f.kubectl("describe pods -l %s=agent", componentLabel), "%s", ready)
	case status.ObservedGeneration < set.Generation || status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		return warning(name, f.kubectl("rollout status daemonset %s", agentName), "%s, an update is in progress", ready)
	}
	return ok(name, "%s", ready)
}

func (f *Facts) readyAgents() sets.Set[string] {
	ready := sets.New[string]()
	for i := range f.Pods.Value {
		if pod := &f.Pods.Value[i]; pod.Labels[componentLabel] == "agent" && pod.Spec.NodeName != "" && planning.Ready(pod) {
			ready.Insert(pod.Spec.NodeName)
		}
	}
	return ready
}

// nodes checks that each node that should have an agent has a ready one.
func (f *Facts) nodes() []Result {
	const name = "nodes"
	if err := firstError(f.Nodes.Err, f.Pods.Err, f.DaemonSets.Err); err != nil {
		return unreadable(name, err)
	}
	set := named(f.DaemonSets.Value, agentName)
	if set == nil {
		return nil
	}
	template := &corev1.Pod{Spec: set.Spec.Template.Spec}
	ready := f.readyAgents()
	var without, down, excluded []string
	virtual := 0
	for i := range f.Nodes.Value {
		node := &f.Nodes.Value[i]
		switch {
		case ready.Has(node.Name):
		case !serverless.HasAgent(node.Labels):
			virtual++
		case !serverless.Admits(node, template):
			excluded = append(excluded, node.Name)
		case !nodeIsReady(node):
			down = append(down, node.Name)
		default:
			without = append(without, node.Name)
		}
	}
	for _, list := range [][]string{without, down, excluded} {
		slices.Sort(list)
	}
	total := len(f.Nodes.Value) - virtual
	switch {
	case len(without) > 0:
		return failed(name, f.agentOn(without[0]), "%d of %s no ready agent: %s", len(without), text.Count(total, "node")+" have", text.List(without, maxNames))
	case len(excluded) > 0:
		return warning(name,
			"nothing if this is intended, for example for Windows; otherwise change agent.nodeSelector, agent.affinity or agent.tolerations of the chart",
			"the node selector, affinity or tolerations of the DaemonSet exclude %s: %s", text.Count(len(excluded), "node"), text.List(excluded, maxNames))
	case len(down) > 0:
		return warning(name, "kubectl describe node "+down[0],
			"%s not ready and without an agent: %s", text.Count(len(down), "node"), text.List(down, maxNames))
	}
	line := text.Count(total, "node") + " with a ready agent"
	if virtual > 0 {
		line += ", and " + text.Count(virtual, "virtual node") + " without one"
	}
	return ok(name, "%s", line)
}

func nodeIsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
