// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// plans checks that each plan has an agent that runs it.
func (f *Facts) plans() []Result {
	const name = "plans"
	if f.Plans.Err != nil {
		return unreadable(name, f.Plans.Err)
	}
	ready := f.readyAgents()
	nodes := f.nodeNames()
	var orphaned, unattended, outdated []string
	pods, probes := 0, 0
	for i := range f.Plans.Value {
		p := &f.Plans.Value[i]
		pods += len(p.Spec.PodProbes)
		for j := range p.Spec.PodProbes {
			probes += len(p.Spec.PodProbes[j].Probes)
		}
		switch {
		case nodes != nil && !nodes.Has(p.Name):
			orphaned = append(orphaned, p.Name)
		case len(p.Spec.PodProbes) > 0 && f.Pods.Err == nil && !ready.Has(p.Name):
			unattended = append(unattended, p.Name)
		case isProblem(diagnosis.OfAgent(p, f.Now)):
			outdated = append(outdated, p.Name)
		}
	}
	switch {
	case len(unattended) > 0:
		return failed(name, f.agentOn(unattended[0]),
			"%s with probes and without a ready agent: %s", text.Count(len(unattended), "node"), text.List(unattended, maxNames))
	case len(outdated) > 0:
		return failed(name, f.logs("agent")+" --prefix | grep "+outdated[0],
			"the agents of %s run an outdated plan: %s", text.Count(len(outdated), "node"), text.List(outdated, maxNames))
	case len(orphaned) > 0:
		return warning(name, "kubectl delete nodepodprobe "+orphaned[0],
			"%s of nodes that do not exist: %s", text.Count(len(orphaned), "plan"), text.List(orphaned, maxNames))
	}
	return ok(name, "%s for %s in %s", text.Count(probes, "probe"), text.Count(pods, "pod"), text.Count(len(f.Plans.Value), "plan"))
}

// isProblem reports whether a finding is a problem now.
func isProblem(found *diagnosis.Finding) bool { return found != nil && !found.Waiting }

// nodeNames returns the names of the nodes, or nil if they are not known.
func (f *Facts) nodeNames() sets.Set[string] {
	if f.Nodes.Err != nil {
		return nil
	}
	found := sets.New[string]()
	for i := range f.Nodes.Value {
		found.Insert(f.Nodes.Value[i].Name)
	}
	return found
}

// reports checks that each report belongs to a node, and that each planned probe has a result.
func (f *Facts) reports() []Result {
	const name = "reports"
	if err := firstError(f.Reports.Err, f.Plans.Err); err != nil {
		return unreadable(name, err)
	}
	nodes := f.nodeNames()
	orphaned, byNode := sets.New[string](), map[string][]*seamarkv1alpha1.ProbeReport{}
	for i := range f.Reports.Value {
		report := &f.Reports.Value[i]
		if nodes != nil && !nodes.Has(report.NodeName) {
			orphaned.Insert(report.Name)
		}
		byNode[report.NodeName] = append(byNode[report.NodeName], report)
	}
	found := results{problems: map[diagnosis.Reason][]string{}}
	for i := range f.Plans.Value {
		npp := &f.Plans.Value[i]
		found.add(mark.NodeReport{Plan: npp, Slices: byNode[npp.Name]}, f.Now)
	}
	switch {
	case orphaned.Len() > 0:
		return warning(name, "kubectl delete probereport "+sets.List(orphaned)[0],
			"%s of nodes that do not exist: %s", text.Count(orphaned.Len(), "report"), text.List(sets.List(orphaned), maxNames))
	case len(found.problems) > 0:
		return found.withoutResult(name)
	}
	return ok(name, "%s of %s in %s", text.Count(found.states, "state"), text.Count(found.pods, "pod"), text.Count(len(f.Reports.Value), "report"))
}

// results are what is reported for the probes of plans.
type results struct {
	// states is the number of states that are reported, and pods the number of pods that have one.
	states, pods int
	// problems are the probes without a current result by reason, as namespace/pod marker#probe.
	problems map[diagnosis.Reason][]string
}

// add adds the probes of the plan of a node. A pod that is not planned any more stays in its report for
// a while.
func (r *results) add(node mark.NodeReport, now time.Time) {
	for i := range node.Plan.Spec.PodProbes {
		entry := &node.Plan.Spec.PodProbes[i]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: entry.Namespace, Name: entry.Name, UID: types.UID(entry.UID)}}
		v := podview.Pod{Object: pod, NodeKind: podview.KubeletNode, Report: node.OfPod(pod.UID)}
		findings := diagnosis.New(diagnosis.Input{Pod: v, Node: node, Now: now})
		if r.states += len(v.Report.States); len(v.Report.States) > 0 {
			r.pods++
		}
		for j := range entry.Probes {
			id, err := identity.Parse(entry.Probes[j].Name)
			if err != nil {
				continue
			}
			if f := findings.Report(plan.PlannedProbe{ID: id, Plan: entry.Probes[j]}); isProblem(f) {
				r.problems[f.Reason] = append(r.problems[f.Reason], fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, id))
			}
		}
	}
}

// withoutResult returns the result about the probes that have problems.
func (r *results) withoutResult(check string) []Result {
	reasons := slices.Sorted(maps.Keys(r.problems))
	var parts []string
	for _, reason := range reasons {
		parts = append(parts, fmt.Sprintf("%s (%s): %s", reason, text.Count(len(r.problems[reason]), "probe"), text.List(r.problems[reason], maxNames)))
	}
	pod, _, _ := strings.Cut(r.problems[reasons[0]][0], " ")
	namespace, name, _ := strings.Cut(pod, "/")
	return warning(check, fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name), "probes have problems: %s", strings.Join(parts, "; "))
}

// maxMarkers is the maximum number of markers with problems that have a result of their own.
const maxMarkers = 10

// markers checks that the manager has processed each marker and reports no problem.
func (f *Facts) markers() []Result {
	const name = "markers"
	if f.Markers.Err != nil {
		return unreadable(name, f.Markers.Err)
	}
	var results []Result
	var outdated []string
	more := 0
	hasProblem := func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionFalse && c.Type != v1alpha1.ConditionPodsMatched // Workloads are scaled to zero.
	}
	for i := range f.Markers.Value {
		m := &f.Markers.Value[i]
		full := m.Namespace + "/" + m.Name
		if m.Status.ObservedGeneration < m.Generation && f.Now.Sub(podview.Edited(m)) >= diagnosis.Settle {
			outdated = append(outdated, full)
			continue
		}
		j := slices.IndexFunc(m.Status.Conditions, hasProblem)
		if j < 0 {
			continue
		}
		if len(results) == maxMarkers {
			more++
			continue
		}
		problem := m.Status.Conditions[j]
		results = append(results, warning("marker/"+full, fmt.Sprintf("kubectl -n %s describe podprobemarker %s", m.Namespace, m.Name),
			"%s is False: %s: %s", problem.Type, problem.Reason, strings.Join(strings.Fields(problem.Message), " "))...)
	}
	if more > 0 {
		results = append(results, warning(name, "kubectl get podprobemarkers --all-namespaces", "%s with problems", text.Count(more, "more marker"))...)
	}
	if len(outdated) > 0 {
		results = append(results, failed(name, f.logs("manager"),
			"the manager has not processed %s: %s", text.Count(len(outdated), "marker"), text.List(outdated, maxNames))...)
	}
	if len(results) == 0 {
		return ok(name, "%s without problems", text.Count(len(f.Markers.Value), "marker"))
	}
	return results
}
