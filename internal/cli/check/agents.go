// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// agentSet returns the DaemonSet of the agents, or nil.
func (f *Facts) agentSet() *appsv1.DaemonSet {
	i := slices.IndexFunc(f.DaemonSets.Value, func(d appsv1.DaemonSet) bool { return d.Name == agentName })
	if i < 0 {
		return nil
	}
	return &f.DaemonSets.Value[i]
}

// agents checks the DaemonSet.
func (f *Facts) agents() []Result {
	const name = "agents"
	if f.DaemonSets.Err != nil {
		return []Result{unreadable(name, f.DaemonSets.Err)}
	}
	set := f.agentSet()
	if set == nil {
		return []Result{{
			Check: name, Verdict: Failed, Evidence: fmt.Sprintf("namespace %s has no DaemonSet %s", f.Namespace, agentName),
			Fix: "install Seamark (docs/install.md), or name its namespace with --seamark-namespace",
		}}
	}
	status := set.Status
	r := Result{
		Check: name, Evidence: fmt.Sprintf("%d of %s ready", status.NumberReady, count(int(status.DesiredNumberScheduled), "agent")),
		Fix: fmt.Sprintf("kubectl -n %s describe pods -l %s=agent", f.Namespace, componentLabel),
	}
	switch {
	case status.DesiredNumberScheduled == 0:
		r.Verdict, r.Evidence = Failed, "no node matches the node selector and affinity of the DaemonSet"
		r.Fix = fmt.Sprintf("kubectl -n %s get daemonset %s -o yaml", f.Namespace, agentName)
	case status.NumberReady < status.DesiredNumberScheduled:
		r.Verdict = Failed
	case status.ObservedGeneration < set.Generation || status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		r.Verdict, r.Evidence = Warning, r.Evidence+", an update is in progress"
		r.Fix = fmt.Sprintf("kubectl -n %s rollout status daemonset %s", f.Namespace, agentName)
	default:
		return []Result{ok(name, "%s", r.Evidence)}
	}
	return []Result{r}
}

// readyAgents returns the nodes that have a ready agent.
func (f *Facts) readyAgents() sets.Set[string] {
	ready := sets.New[string]()
	for i := range f.Pods.Value {
		if pod := &f.Pods.Value[i]; pod.Labels[componentLabel] == "agent" && pod.Spec.NodeName != "" && isReady(pod.Status.Conditions) {
			ready.Insert(pod.Spec.NodeName)
		}
	}
	return ready
}

func isReady(conditions []corev1.PodCondition) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// nodes checks that each node that should have an agent has a ready one.
func (f *Facts) nodes() []Result {
	const name = "nodes"
	if err := firstError(f.Nodes.Err, f.Pods.Err, f.DaemonSets.Err); err != nil {
		return []Result{unreadable(name, err)}
	}
	set := f.agentSet()
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
		return []Result{{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("%d of %s no ready agent: %s", len(without), count(total, "node")+" have", names(without)),
			Fix:      fmt.Sprintf("kubectl -n %s get pods -l %s=agent --field-selector spec.nodeName=%s", f.Namespace, componentLabel, without[0]),
		}}
	case len(excluded) > 0:
		return []Result{{
			Check: name, Verdict: Warning,
			Evidence: fmt.Sprintf("the node selector, affinity or tolerations of the DaemonSet exclude %s: %s", count(len(excluded), "node"), names(excluded)),
			Fix:      "nothing if this is intended, for example for Windows; otherwise change agent.nodeSelector, agent.affinity or agent.tolerations of the chart",
		}}
	case len(down) > 0:
		return []Result{{
			Check: name, Verdict: Warning, Evidence: fmt.Sprintf("%s not ready and without an agent: %s", count(len(down), "node"), names(down)),
			Fix: "kubectl describe node " + down[0],
		}}
	}
	text := count(total, "node") + " with a ready agent"
	if virtual > 0 {
		text += ", and " + count(virtual, "virtual node") + " without one"
	}
	return []Result{ok(name, "%s", text)}
}

func nodeIsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
