// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/workload"
)

// leaseDuration is that of a lease without a duration, and grace how much later than a lease ends
// the manager counts as down: the clocks of two machines may differ.
const (
	leaseDuration = 15 * time.Second
	grace         = 30 * time.Second
)

// manager adds the step about the leading manager.
func (e *explainer) manager() {
	const title = "Manager"
	if e.unread(SourceManager, title, "the lease of the managers") {
		return
	}
	pods := e.system("get pods -l app.kubernetes.io/component=manager")
	lease := e.in.Lease
	if lease == nil {
		e.problem(title, "no manager has run: namespace "+e.in.SystemNamespace+" has no lease of managers", pods)
		return
	}
	holder, duration, renewed := "", leaseDuration, time.Time{}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	switch {
	case holder == "":
		e.late(renewed, title, "no manager leads: plans and marks do not change", pods)
	case e.in.Now.Sub(renewed) > duration+grace:
		e.problem(title, fmt.Sprintf("no manager has led for %s: plans and marks do not change", e.age(renewed)), pods, "the last leader was "+holder)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: holder + " leads"})
	}
}

// entry returns the pod's entry in the plan of the node, or nil if there is none.
func (e *explainer) entry() *v1alpha1.PodProbe {
	if e.in.Plan == nil {
		return nil
	}
	for i := range e.in.Plan.Spec.PodProbes {
		if pod := &e.in.Plan.Spec.PodProbes[i]; pod.UID == string(e.in.Pod.UID) {
			return pod
		}
	}
	return nil
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
	if e.unread(SourcePlan, title, "the plan of the node") {
		return
	}
	e.planned = make(map[string]bool)
	npp, logs := e.in.Plan, e.managerLogs()
	if npp == nil {
		e.late(e.changed(), title, "the node has no NodePodProbe: the manager has not created it", logs)
		return
	}
	entry := e.entry()
	if entry != nil {
		for _, p := range entry.Probes {
			e.planned[p.Name] = true
		}
	}
	want := plan.Node([]*corev1.Pod{e.in.Pod}, e.compiled, e.options.Defaults).PodProbes
	switch {
	case len(want) == 0 && entry == nil && plan.AwaitsAddress(e.in.Pod, e.view.Plan.Probes):
		e.late(e.changed(), title, "the pod is not in it yet: it has a network probe and no IP address",
			e.kubectl("describe pod %s", e.in.Pod.Name))
	case len(want) == 0 && entry == nil:
		e.add(Step{Title: title, Verdict: Info, Text: "the pod is not in it: it has no probe that can run"})
	case len(want) > 0 && entry == nil && e.full(title):
	case len(want) > 0 && entry == nil:
		e.late(e.changed(), title, "the pod is not in it: the manager has not planned its probes", logs)
	case len(want) == 0:
		e.late(e.changed(), title, "the pod is still in it: the manager has not updated the plan", logs)
	case !equality.Semantic.DeepEqual(*entry, want[0]):
		if !e.missingProbes(want[0]) || !e.full(title) {
			e.late(e.changed(), title, "it is outdated: the manager has not updated it", logs, planDifferences(entry, &want[0])...)
		}
	default:
		e.inForce(title)
	}
}

// missingProbes reports whether a probe is not in the plan.
func (e *explainer) missingProbes(want v1alpha1.PodProbe) bool {
	return slices.ContainsFunc(want.Probes, func(p v1alpha1.ContainerProbe) bool { return !e.planned[p.Name] })
}

// full adds the problem that the plan has no room for a marker of the pod, if there is one.
func (e *explainer) full(title string) bool {
	for _, m := range sorted(e.in.Markers) {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProbesResolved)
		if c != nil && c.Reason == string(plan.NodePlanFull) {
			e.problem(title, "it has no room for all probes of the namespace", e.kubectl("describe podprobemarker %s", m.Name), c.Message)
			return true
		}
	}
	return false
}

// planDifferences describes how the entry of the pod differs from what it should be.
func planDifferences(entry, want *v1alpha1.PodProbe) []string {
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

// inForce adds whether the agent runs the plan.
func (e *explainer) inForce(title string) {
	npp := e.in.Plan
	generations := fmt.Sprintf("the generation of the plan is %d, and the agent runs generation %d", npp.Generation, npp.Status.ObservedGeneration)
	switch {
	case mark.InStatus(npp) && npp.Status.ObservedGeneration == 0:
		e.add(Step{Title: title, Verdict: OK, Text: "it has the probes of the pod. The agent is that of OpenKruise, which does not report which plan it runs"})
	case npp.Status.ObservedGeneration == 0:
		e.late(edited(npp), title, "it has the probes of the pod, but no agent has reported that it runs the plan", e.agentLogs(), generations)
	case npp.Status.ObservedGeneration < npp.Generation && e.in.Now.Sub(edited(npp)) < settle && e.allReported():
		// The plan changes with every pod of the node.
		e.add(Step{Title: title, Verdict: Info, Text: "it has the probes of the pod. The agent is about to run a later plan", Evidence: []string{generations}})
	case npp.Status.ObservedGeneration < npp.Generation:
		e.late(edited(npp), title, "it has the probes of the pod, but the agent runs an earlier plan", e.agentLogs(), generations)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: fmt.Sprintf("it has the probes of the pod, and the agent runs it (generation %d)", npp.Generation)})
	}
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
	if e.unread(SourceAgent, title, "the pod of the agent") {
		return
	}
	before := len(e.steps)
	agent := e.in.Agent
	switch {
	case agent == nil:
		e.problem(title, "the node has no agent: check the nodeSelector and the tolerations of the DaemonSet",
			e.system("describe daemonset -l app.kubernetes.io/component=agent"))
	case !workload.Ready(agent):
		next := e.agentLogs()
		if !plan.HasRun(agent) {
			next = e.system("describe pod %s", agent.Name)
		}
		e.problem(title, fmt.Sprintf("%s is not ready", agent.Name), next, append(conditionLine(agent, corev1.PodReady), waiting(agent)...)...)
	default:
		e.add(Step{Title: title, Verdict: OK, Text: agent.Name + " is ready"})
		return
	}
	// If the manager has written the plan, the agent is the cause.
	if last := before - 1; last >= 0 && len(e.planned) > 0 && e.steps[last].Verdict == Problem && e.steps[last].Next == e.agentLogs() {
		e.steps[last].Verdict, e.steps[last].Next = Waiting, e.again()
	}
}

// waiting returns a line for each container of the pod that waits.
func waiting(pod *corev1.Pod) []string {
	var lines []string
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			lines = append(lines, fmt.Sprintf("container %s waits: %s", c.Name, reasonOf(w)))
		}
	}
	return lines
}

// reasonOf returns the reason and message of a container that waits.
func reasonOf(w *corev1.ContainerStateWaiting) string {
	reason := w.Reason
	if reason == "" {
		reason = "no reason"
	}
	if w.Message != "" {
		reason += ": " + w.Message
	}
	return reason
}
