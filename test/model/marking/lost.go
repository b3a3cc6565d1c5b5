// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// This file has what happens to nodes and to the pods of agents, and the model of the rules of docs/stale.md.

// system is the namespace of the manager and of the pods of agents.
const system = "seamark-system"

// makeStale lets the states of some probes become stale. Like makeExclusive, it uses no random numbers. The longest time is
// shorter than a pause.
func (w *world) makeStale(p *v1alpha1.PodContainerProbe) {
	if w.created%3 == 0 {
		after := int32(10 * (1 + w.created/3%3)) //nolint:gosec // small
		p.StaleAfterSeconds = &after
	}
}

func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

func (w *world) createNode(name string) {
	n := w.nodes[name]
	if n == nil {
		n = &node{world: w, name: name, containers: map[identity.ContainerKey]cri.Instance{}}
		w.nodes[name] = n
	}
	_, _ = w.server.Create("kubelet", nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: now()}},
	}})
}

// recreateNode deletes a Node and creates it again. Its plan and its reports may be collected before or after.
func (w *world) recreateNode() {
	name := w.names[w.rand.IntN(len(w.names))]
	w.server.Remove("user", nodes, types.NamespacedName{Name: name})
	for range w.rand.IntN(8) {
		w.churn()
	}
	if w.rand.IntN(2) == 0 {
		w.server.collect()
	}
	w.createNode(name)
}

// setReady changes the condition Ready of a Node.
func (w *world) setReady(name string, status corev1.ConditionStatus) {
	_, _ = w.server.Update("kubelet", nodes, types.NamespacedName{Name: name}, preconditions{}, func(o client.Object) error {
		node := o.(*corev1.Node) //nolint:forcetypeassert // of this kind
		if len(node.Status.Conditions) == 0 || node.Status.Conditions[0].Status != status {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: now()}}
		}
		return nil
	})
}

// loseNode lets a node become not ready: its kubelet says so, or is silent.
func (w *world) loseNode() {
	w.setReady(w.anyNode().name, []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown}[w.rand.IntN(2)])
}

func (w *world) returnNode() {
	name := w.anyNode().name
	w.createNode(name)
	w.setReady(name, corev1.ConditionTrue)
}

// deleteNode deletes a Node. It comes back when it returns, or at the end of the faults.
func (w *world) deleteNode() {
	w.server.Remove("user", nodes, types.NamespacedName{Name: w.anyNode().name})
	if w.rand.IntN(2) == 0 {
		w.server.collect()
	}
}

// isSilent reports whether the kubelet of the node does nothing.
func (w *world) isSilent(name string) bool {
	o, err := w.server.Get(nodes, types.NamespacedName{Name: name})
	return err != nil || slices.ContainsFunc(o.(*corev1.Node).Status.Conditions, func(c corev1.NodeCondition) bool { //nolint:forcetypeassert // of this kind
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}

// agentPods returns the pods of the agent of the node.
func (w *world) agentPods(node string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, o := range w.server.List(pods) {
		if pod := o.(*corev1.Pod); pod.Namespace == system && pod.Spec.NodeName == node { //nolint:forcetypeassert // all are
			found = append(found, pod)
		}
	}
	return found
}

// createAgentPod creates a pod of the agent on the node. It is ready, or is not yet.
func (w *world) createAgentPod(node string, ready bool) {
	w.created++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: fmt.Sprintf("agent-%d", w.created)}}
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, "seamark-agent"
	pod.Status.Phase = corev1.PodRunning
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now()}}
	}
	_, _ = w.server.Create("kubelet", pods, pod)
}

// loseAgent lets the pod of an agent become not ready, end, or be deleted. The process may stop or not: a pod that is not ready
// may have an agent that reports.
func (w *world) loseAgent() {
	all := w.agentPods(w.anyNode().name)
	if len(all) == 0 {
		return
	}
	key := client.ObjectKeyFromObject(all[w.rand.IntN(len(all))])
	switch w.rand.IntN(3) {
	case 0:
		w.setAgentReady(key, corev1.ConditionFalse)
	case 1:
		_ = w.server.Delete("user", pods, key, preconditions{})
	default:
		w.server.Remove("user", pods, key)
	}
}

func (w *world) setAgentReady(key types.NamespacedName, status corev1.ConditionStatus) {
	_, _ = w.server.Update("kubelet", pods, key, preconditions{}, func(o client.Object) error {
		pod := o.(*corev1.Pod) //nolint:forcetypeassert // of this kind
		if len(pod.Status.Conditions) == 0 || pod.Status.Conditions[0].Status != status {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: now()}}
		}
		return nil
	})
}

// returnAgent lets the pod of an agent become ready, or creates one, and starts the process.
func (w *world) returnAgent() {
	n := w.anyNode()
	w.returnAgentOf(n, w.rand.IntN(4) > 0)
}

func (w *world) returnAgentOf(n *node, ready bool) {
	if !n.running {
		w.startAgent(n)
	}
	for _, pod := range w.agentPods(n.name) {
		if pod.DeletionTimestamp == nil {
			w.setAgentReady(client.ObjectKeyFromObject(pod), corev1.ConditionTrue)
			return
		}
	}
	w.createAgentPod(n.name, ready)
}

// stopAnyAgent ends the process of an agent, whose pod becomes not ready with it or later.
func (w *world) stopAnyAgent() {
	n := w.anyNode()
	if !n.running {
		return
	}
	w.stopAgent(n)
	if all := w.agentPods(n.name); len(all) > 0 && w.rand.IntN(4) > 0 {
		w.setAgentReady(client.ObjectKeyFromObject(all[0]), corev1.ConditionFalse)
	}
}

// recover is the last phase: all nodes and agents return, and so do the marks.
func (w *world) recover() {
	if w.err != nil {
		return
	}
	w.trace("all nodes and agents return")
	for _, name := range w.names {
		w.createNode(name)
		w.setReady(name, corev1.ConditionTrue)
		w.returnAgentOf(w.nodes[name], true)
	}
	w.rest(pause)
}

// isLost reports whether the states of the pods of the node are not current: its Node is gone or not ready, or no agent on it is
// ready.
func (w *world) isLost(name string) bool {
	o, err := w.server.Get(nodes, types.NamespacedName{Name: name})
	if err != nil || slices.ContainsFunc(o.(*corev1.Node).Status.Conditions, func(c corev1.NodeCondition) bool { //nolint:forcetypeassert // of this kind
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	}) {
		return true
	}
	return !slices.ContainsFunc(w.agentPods(name), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

// noteLost remembers which nodes have ever been lost: pods of others never have marks of a stale state.
func (w *world) noteLost(k kind, e event) {
	if k != nodes && (k != pods || e.Key.Namespace != system) {
		return
	}
	for _, name := range w.names {
		if n := w.nodes[name]; n != nil && n.process != "" && w.isLost(name) {
			w.history.lost[name] = true
		}
	}
}

// isStale reports whether the state of the probe, if it has one, is stale when nothing changes any more.
func (w *world) isStale(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) bool {
	return probe.StaleAfterSeconds != nil && w.isLost(pod.Spec.NodeName)
}

// isAmbiguous reports whether the marks of a pod may not show that a state of the marker is stale, while no object has the time since
// when: without a condition of the probe, they may be the same in both states. After a restart, the counts of such a marker may change.
func (w *world) isAmbiguous(marker *v1alpha1.PodProbeMarker) bool {
	return slices.ContainsFunc(w.games(), func(pod *corev1.Pod) bool {
		found := false
		w.eachProbe(pod, func(probe *v1alpha1.PodContainerProbe, before map[field]bool) {
			own := probe.PodConditionType != "" && !before[field{Kind: oracle.Condition, Name: probe.PodConditionType}]
			isOf := slices.ContainsFunc(marker.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return token(&p) == token(probe) })
			found = found || isOf && w.isStale(pod, probe) && !own
		})
		return found
	})
}
