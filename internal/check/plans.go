// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

const (
	// takeover is how long an agent may take to run a new plan and to report it.
	takeover = 30 * time.Second
	// firstResult is how long a probe may take until it has a first result.
	firstResult = 5 * time.Minute
)

// changed returns when the spec of the object was last written.
func changed(meta *metav1.ObjectMeta) time.Time {
	at := meta.CreationTimestamp.Time
	for _, entry := range meta.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// isFresh reports whether the object was written so recently that others may not have acted on it.
func (f *Facts) isFresh(meta *metav1.ObjectMeta, limit time.Duration) bool {
	return f.Now.Sub(changed(meta)) < limit
}

// plans checks that each plan has an agent that runs it.
func (f *Facts) plans() []Result {
	const name = "plans"
	if f.Plans.Err != nil {
		return []Result{unreadable(name, f.Plans.Err)}
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
		case p.Status.ObservedGeneration < p.Generation && !f.isFresh(&p.ObjectMeta, takeover):
			outdated = append(outdated, p.Name)
		}
	}
	switch {
	case len(unattended) > 0:
		return []Result{{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("%s with probes and without a ready agent: %s", count(len(unattended), "node"), names(unattended)),
			Fix:      fmt.Sprintf("kubectl -n %s get pods -l %s=agent --field-selector spec.nodeName=%s", f.Namespace, componentLabel, unattended[0]),
		}}
	case len(outdated) > 0:
		return []Result{{
			Check: name, Verdict: Failed,
			Evidence: fmt.Sprintf("the agents of %s run an outdated plan: %s", count(len(outdated), "node"), names(outdated)),
			Fix:      fmt.Sprintf("kubectl -n %s logs -l %s=agent --tail=50 --prefix | grep %s", f.Namespace, componentLabel, outdated[0]),
		}}
	case len(orphaned) > 0:
		return []Result{{
			Check: name, Verdict: Warning, Evidence: fmt.Sprintf("%s of nodes that do not exist: %s", count(len(orphaned), "plan"), names(orphaned)),
			Fix: "kubectl delete nodepodprobe " + orphaned[0],
		}}
	}
	return []Result{ok(name, "%s for %s in %s", count(probes, "probe"), count(pods, "pod"), count(len(f.Plans.Value), "plan"))}
}

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
		return []Result{unreadable(name, err)}
	}
	nodes := f.nodeNames()
	orphaned, errors := sets.New[string](), map[v1alpha1.ProbeErrorReason][]string{}
	reported, planned := sets.New[key](), f.planned()
	for i := range f.Reports.Value {
		report := &f.Reports.Value[i]
		if nodes != nil && !nodes.Has(report.NodeName) {
			orphaned.Insert(report.Name)
			continue
		}
		for j := range report.Pods {
			reported.Insert(keysOf(&report.Pods[j])...)
			for _, e := range report.Pods[j].Errors {
				// A pod that is not planned any more stays in its report for a while.
				if !planned.Has(key{report.Pods[j].UID, e.Name}) {
					continue
				}
				errors[e.Reason] = append(errors[e.Reason], fmt.Sprintf("%s/%s %s", report.Pods[j].Namespace, report.Pods[j].Name, e.Name))
			}
		}
	}
	silent := f.silent(reported)
	switch {
	case len(orphaned) > 0:
		return []Result{{
			Check: name, Verdict: Warning,
			Evidence: fmt.Sprintf("%s of nodes that do not exist: %s", count(len(orphaned), "report"), names(sets.List(orphaned))),
			Fix:      "kubectl delete probereport " + sets.List(orphaned)[0],
		}}
	case len(silent) > 0:
		pod, _, _ := strings.Cut(silent[0], " ")
		return []Result{{
			Check: name, Verdict: Warning,
			Evidence: fmt.Sprintf("%s without a result for %s: %s", count(len(silent), "probe"), firstResult, names(silent)),
			Fix:      describe(pod),
		}}
	case len(errors) > 0:
		return []Result{cannotRun(name, errors)}
	}
	return []Result{ok(name, "%s of %s in %s", count(len(reported), "state"), count(f.reportedPods(), "pod"), count(len(f.Reports.Value), "report"))}
}

// describe returns the command that shows a pod, given as namespace/name.
func describe(pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	return fmt.Sprintf("kubectl -n %s describe pod %s", namespace, name)
}

func cannotRun(name string, errors map[v1alpha1.ProbeErrorReason][]string) Result {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(errors)) {
		parts = append(parts, fmt.Sprintf("%s (%s): %s", reason, count(len(errors[reason]), "probe"), names(errors[reason])))
	}
	first := errors[slices.Sorted(maps.Keys(errors))[0]][0]
	pod, _, _ := strings.Cut(first, " ")
	return Result{
		Check: name, Verdict: Warning, Evidence: "probes have no current result: " + strings.Join(parts, "; "),
		Fix: describe(pod),
	}
}

// key identifies a probe of a pod.
type key struct{ uid, probe string }

func keysOf(pod *seamarkv1alpha1.PodReport) []key {
	var keys []key
	for i := range pod.Probes {
		keys = append(keys, key{pod.UID, pod.Probes[i].Name})
	}
	for i := range pod.Errors {
		keys = append(keys, key{pod.UID, pod.Errors[i].Name})
	}
	return keys
}

// planned returns the probes of all plans.
func (f *Facts) planned() sets.Set[key] {
	all := sets.New[key]()
	for i := range f.Plans.Value {
		for _, pod := range f.Plans.Value[i].Spec.PodProbes {
			for _, probe := range pod.Probes {
				all.Insert(key{pod.UID, probe.Name})
			}
		}
	}
	return all
}

// silent returns the planned probes that have neither a state nor an error although their plan has
// been in force for a while, as namespace/pod marker#probe.
func (f *Facts) silent(reported sets.Set[key]) []string {
	var found []string
	for i := range f.Plans.Value {
		p := &f.Plans.Value[i]
		if f.isFresh(&p.ObjectMeta, firstResult) || len(p.Status.PodProbeStatuses) > 0 && !p.Status.ProbeReports {
			continue
		}
		for j := range p.Spec.PodProbes {
			pod := &p.Spec.PodProbes[j]
			for k := range pod.Probes {
				if !reported.Has(key{pod.UID, pod.Probes[k].Name}) {
					found = append(found, fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, pod.Probes[k].Name))
				}
			}
		}
	}
	return found
}

func (f *Facts) reportedPods() int {
	pods := 0
	for i := range f.Reports.Value {
		pods += len(f.Reports.Value[i].Pods)
	}
	return pods
}
