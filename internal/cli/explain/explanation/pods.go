// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// PodsInput is what the marks of the pods of a marker, or of a workload of Kubernetes itself, depend on, as far as it could be
// read.
type PodsInput struct {
	// Kind is the kind of the object, and Resource is the object as kubectl names it.
	Kind, Resource string
	// Object is a PodProbeMarker, or a workload of Kubernetes itself.
	Object metav1.Object
	// Pods are those that the marker selects, or those of the workload, with their statuses.
	Pods []*corev1.Pod
	// Near are some pods of the namespace if the marker selects none.
	Near []*corev1.Pod
	// Markers are all markers of the namespace. Elsewhere are markers of other namespaces, if it has none.
	Markers, Elsewhere []*v1alpha1.PodProbeMarker
	// States are the probes of the pods.
	States probestatus.States
	// Nodes is the metadata of the nodes of the pods by name, and Agents their agents by node.
	Nodes  map[string]*metav1.PartialObjectMetadata
	Agents map[string]*corev1.Pod
	// Lease is that of the managers, or nil if there is none.
	Lease *coordinationv1.Lease
	// Unread are the resources that could not be read, of which the pods are those of the agents. Their fields are empty.
	Unread map[permission.Resource]permission.Missing
	// SystemNamespace is the namespace of the managers and agents.
	SystemNamespace string
	// Now is the current time.
	Now time.Time
	// Program is how users call the program seamark.
	Program string
}

// pods collects the steps about the pods of a marker or a workload.
type pods struct {
	*workload
	input PodsInput
	// marker is nil for a workload.
	marker *v1alpha1.PodProbeMarker
}

// Pods explains why the pods of a marker or a workload have the marks that they have: which markers and pods match, the agents of
// their nodes, and the states of the probes.
func Pods(given PodsInput) WorkloadExplanation {
	namespace, name := given.Object.GetNamespace(), given.Object.GetName()
	p := &pods{input: given, workload: &workload{explainer: &explainer{invalid: map[string]error{}, in: Input{
		Namespace: namespace, Name: name, Markers: given.Markers, Elsewhere: given.Elsewhere, Lease: given.Lease,
		Unread: given.Unread, SystemNamespace: given.SystemNamespace, Now: given.Now, Program: given.Program,
	}}}}
	p.given = WorkloadInput{Kind: given.Kind, Object: given.Object}
	p.pods = slices.SortedFunc(slices.Values(given.Pods), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	p.following = p.kubectl("describe %s", given.Resource)
	if marker, ok := given.Object.(*v1alpha1.PodProbeMarker); ok {
		p.marker, p.in.Marker = marker, marker.Name
		p.following = p.watching(marker.Name)
	}
	if p.selection() {
		p.manager()
		p.agents()
		p.states()
	}
	p.conditions()
	x := WorkloadExplanation{Namespace: namespace, Kind: given.Kind, Name: name}
	x.settle(p.explainer)
	return x
}

// selection adds the steps about the markers and the pods. It returns false if there is nothing more to explain.
func (p *pods) selection() bool {
	if p.marker == nil {
		if p.running(); len(p.pods) == 0 {
			return false
		}
		p.in.Pod = p.pods[0]
		return p.markers() && len(p.input.States.Rows) > 0
	}
	if len(p.pods) == 0 {
		p.unselected()
		return false
	}
	p.in.Pod = p.pods[0]
	if !p.markers() {
		return false
	}
	p.probed()
	return len(p.input.States.Rows) > 0
}

// unselected explains why a marker selects no pod: it is invalid, or labels of pods differ.
func (p *pods) unselected() {
	compiled, why, err := compile(p.marker)
	if err != nil {
		p.problem("Marker "+p.marker.Name, "it has no effect"+why+": "+err.Error(), p.kubectl("edit podprobemarker %s", p.marker.Name))
		return
	}
	var closest *other
	var like string
	for _, pod := range p.input.Near {
		p.in.Pod = pod
		if o := p.compare(compiled); len(o.unmet) > 0 && (closest == nil || nearer(o, *closest) < 0) {
			closest, like = &o, pod.Name
		}
	}
	p.in.Pod = nil
	text := fmt.Sprintf("no pod of namespace %s matches the selector %s", p.in.Namespace, metav1.FormatLabelSelector(p.marker.Spec.Selector))
	if closest == nil {
		p.problem("Pods", text, p.kubectl("get pods --show-labels"))
		return
	}
	evidence := []string{fmt.Sprintf("the closest is pod %s:", like)}
	p.problem("Pods", text, p.kubectl("get pod %s --show-labels", like), append(append(evidence, closest.unmet...), immutable)...)
}

// probed adds the step about the pods that a marker selects.
func (p *pods) probed() {
	reasons := groups{}
	for _, pod := range p.pods {
		if found := diagnosis.OfPod(pod); found != nil {
			reasons.add(found.String(), pod.Name)
		}
	}
	eligible := len(p.pods) - reasons.size()
	step := Step{
		Title: "Pods", Verdict: OK, Text: fmt.Sprintf("%d of %d that match can be probed", eligible, len(p.pods)),
		Evidence: reasons.lines(),
	}
	if eligible == 0 {
		step.Verdict, step.Next = Waiting, inspect(p.in.Namespace, p.pods[0])
	}
	p.add(step)
}

// agents adds the step about the nodes of the pods: whether they have agents that are ready and run their plans.
func (p *pods) agents() {
	const title = "Nodes"
	if p.unread(permission.Nodes, title, "the nodes") || p.unread(permission.Pods, title, "the pods of the agents") {
		return
	}
	var names, bad []string
	next := ""
	for _, pod := range p.pods {
		node := pod.Spec.NodeName
		if diagnosis.OfPod(pod) != nil || slices.Contains(names, node) {
			continue
		}
		names = append(names, node)
		why, command := p.agentOf(node)
		if why == "" {
			continue
		}
		bad = append(bad, fmt.Sprintf("node %s: %s", node, why))
		if next == "" {
			next = command
		}
	}
	slices.Sort(names)
	switch {
	case len(bad) > 0:
		p.problem(title, fmt.Sprintf("%d of %d have no agent that is ready", len(bad), len(names)), next, bounded(bad)...)
	case len(names) > 0:
		p.add(Step{
			Title: title, Verdict: OK,
			Text: fmt.Sprintf("%[1]d of %[1]d have an agent that is ready: %[2]s", len(names), text.List(names, text.MaxNames)),
		})
	}
}

// agentOf returns why no agent probes the pods of a node, and the command that shows it. It is empty if one is ready, or if a provider
// probes the pods.
func (p *pods) agentOf(name string) (why, next string) {
	node, agent := p.input.Nodes[name], p.input.Agents[name]
	switch {
	case node == nil:
		return "the node does not exist", "kubectl get nodes"
	case serverless.IsVirtual(node.Labels):
		return "", ""
	case !serverless.HasAgent(node.Labels):
		return "no agent can run on such a node", fmt.Sprintf("kubectl get node %s --show-labels", name)
	case agent == nil:
		return "it has no agent", p.system("describe daemonset.apps -l app.kubernetes.io/component=agent")
	case !planning.Ready(agent):
		p.in.Agent = agent
		return agent.Name + " is not ready", p.agentLogs()
	}
	return "", ""
}

// conditions adds the steps about the conditions of a marker that are False.
func (p *pods) conditions() {
	if p.marker == nil {
		return
	}
	for _, c := range p.marker.Status.Conditions {
		known := c.Type == v1alpha1.ConditionPodsMatched || c.Reason == string(plan.NamespaceExcluded)
		if c.Status == metav1.ConditionFalse && !known {
			p.problem("Condition "+c.Type, fmt.Sprintf("False (%s) for %s: %s", c.Reason, p.age(c.LastTransitionTime.Time), c.Message),
				p.kubectl("describe podprobemarker %s", p.marker.Name))
		}
	}
}
