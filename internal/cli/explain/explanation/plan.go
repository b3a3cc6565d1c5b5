// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// manager adds the step about the leading manager.
func (e *explainer) manager() {
	e.leader("Manager", "manager", "manager", "plans and marks do not change")
}

// leader adds the step about the process that leads, of a component of Seamark. The effect is that of having none.
func (e *explainer) leader(title, process, component, effect string) {
	if e.unread(Leases, title, "the lease of the "+process+"s") {
		return
	}
	pods := e.system("get pods -l app.kubernetes.io/component=%s", component)
	if e.in.Lease == nil {
		e.problem(title, fmt.Sprintf("no %s has run: namespace %s has no lease of %ss", process, e.in.SystemNamespace, process), pods)
		return
	}
	holder, renewed, leads := diagnosis.Leader(e.in.Lease, e.in.Now)
	switch {
	case holder == "":
		e.late(renewed, title, fmt.Sprintf("no %s leads: %s", process, effect), pods)
	case !leads:
		e.problem(title, fmt.Sprintf("no %s has led for %s: %s", process, e.age(renewed), effect), pods, "the last leader was "+holder)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: holder + " leads"})
	}
}

// want returns the entry of the pod in the plan of the node as the manager computes it, or nil if there
// should be none.
func (e *explainer) want() *v1alpha1.PodProbe {
	want := plan.Node([]*corev1.Pod{e.in.Pod}, e.compiled, e.options.Defaults).PodProbes
	if len(want) == 0 {
		return nil
	}
	return &want[0]
}

// defaultsIn returns the manager's defaults: a field that is unset in a marker has its default in
// the plan.
func defaultsIn(entry *v1alpha1.PodProbe, probes []plan.PlannedProbe) plan.Defaults {
	defaults := plan.KubernetesDefaults()
	for _, p := range probes {
		i := slices.IndexFunc(entry.Probes, func(c v1alpha1.ContainerProbe) bool { return c.Name == p.Plan.Name })
		if i < 0 {
			continue
		}
		// A marker that requests Immediate itself says nothing about the default.
		if p.Plan.MessageUpdates == "" {
			defaults.MessageUpdates = cmp.Or(defaults.MessageUpdates, entry.Probes[i].MessageUpdates)
		}
		source, planned := &p.Source.Probe, &entry.Probes[i].Probe
		for _, field := range []struct {
			set    int32
			inPlan int32
			value  *int32
		}{
			{source.InitialDelaySeconds, planned.InitialDelaySeconds, &defaults.InitialDelaySeconds},
			{source.PeriodSeconds, planned.PeriodSeconds, &defaults.PeriodSeconds},
			{source.TimeoutSeconds, planned.TimeoutSeconds, &defaults.TimeoutSeconds},
			{source.SuccessThreshold, planned.SuccessThreshold, &defaults.SuccessThreshold},
			{source.FailureThreshold, planned.FailureThreshold, &defaults.FailureThreshold},
		} {
			if field.set <= 0 && field.inPlan > 0 {
				*field.value = field.inPlan
			}
		}
	}
	return defaults
}

// plan adds the step about the plan of the node.
func (e *explainer) plan() {
	title := "Plan of node " + e.in.Pod.Spec.NodeName
	if e.unread(permission.Plans, title, "the plan of the node") {
		return
	}
	e.planned = make(map[string]bool)
	entry := diagnosis.Entry(e.in.Plan, e.in.Pod)
	if entry != nil {
		for _, p := range entry.Probes {
			e.planned[p.Name] = true
		}
	}
	for _, p := range e.view.Plan.Probes {
		if f := e.findings.Plan(p); f != nil {
			e.explain(title, p, f)
			return
		}
	}
	switch {
	case len(e.view.Plan.Probes) == 0 && entry == nil:
		e.add(Step{Title: title, Verdict: Info, Text: "the pod is not in it: it has no probe that can run"})
	case len(e.view.Plan.Probes) == 0:
		e.late(e.findings.Changed(), title, "the pod is still in it: the manager has not updated the plan", e.managerLogs())
	case e.in.Plan.Status.ObservedGeneration < e.in.Plan.Generation:
		e.add(Step{Title: title, Verdict: OK, Text: "it has the probes of the pod. The agent is that of OpenKruise, which does not report which plan it runs"})
	default:
		e.add(Step{Title: title, Verdict: OK, Text: fmt.Sprintf("it has the probes of the pod, and the agent runs it (generation %d)", e.in.Plan.Generation)})
	}
}

// planDifferences describes how the entry of the pod differs from what it should be. Both may be nil.
func planDifferences(entry, want *v1alpha1.PodProbe) []string {
	if entry == nil || want == nil {
		return nil
	}
	var lines []string
	for _, p := range want.Probes {
		i := slices.IndexFunc(entry.Probes, func(c v1alpha1.ContainerProbe) bool { return c.Name == p.Name })
		switch {
		case i < 0:
			lines = append(lines, "it does not have probe "+p.Name)
		case !equality.Semantic.DeepEqual(entry.Probes[i], p):
			lines = append(lines, fmt.Sprintf("it has an earlier version of probe %s", p.Name))
		}
	}
	for _, p := range entry.Probes {
		if !slices.ContainsFunc(want.Probes, func(c v1alpha1.ContainerProbe) bool { return c.Name == p.Name }) {
			lines = append(lines, fmt.Sprintf("it has probe %s, which no marker requires any more", p.Name))
		}
	}
	if entry.IP != want.IP {
		lines = append(lines, fmt.Sprintf("it has the address %q of the pod, which is %q now", entry.IP, want.IP))
	}
	return lines
}

// allReported reports whether each planned probe of the pod has a state.
func (e *explainer) allReported() bool {
	return !slices.ContainsFunc(e.view.Plan.Probes, func(p plan.PlannedProbe) bool {
		_, known := e.view.Report.State(p)
		return !known
	})
}

// agent adds the step about the agent of the node. It comes before the step about the plan if it is
// the cause of that problem.
func (e *explainer) agent() {
	title := "Agent of node " + e.in.Pod.Spec.NodeName
	if e.unread(permission.Pods, title, "the pod of the agent") {
		return
	}
	before := len(e.steps)
	agent := e.in.Agent
	switch {
	case agent == nil:
		e.problem(title, "the node has no agent: check the nodeSelector and the tolerations of the DaemonSet",
			e.system("describe daemonset -l app.kubernetes.io/component=agent"))
	case !planning.Ready(agent):
		e.problem(title, fmt.Sprintf("%s is not ready", agent.Name), e.agentLogs(), append(conditionLine(agent, corev1.PodReady), waiting(agent)...)...)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: agent.Name + " is ready"})
		return
	}
	// If the manager has written the plan, the agent is the cause.
	if last := before - 1; last >= 0 && len(e.planned) > 0 && e.steps[last].Verdict == Problem && e.steps[last].Next == e.agentLogs() {
		e.steps[last].Verdict, e.steps[last].Next = Waiting, e.follow()
	}
}

// waiting returns a line for each container of the pod that waits.
func waiting(pod *corev1.Pod) []string {
	var lines []string
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			lines = append(lines, fmt.Sprintf("container %s waits: %s", c.Name, diagnosis.WaitingReason(w)))
		}
	}
	return lines
}
