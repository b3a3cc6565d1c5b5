// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/ledger"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The verdicts about the deletion or the eviction of a pod.
const (
	// Now means that the API server permits it.
	Now planning.Severity = "now"
	// Later means that the API server refuses it until a mark, a pod or a number of the budget changes.
	Later planning.Severity = "later"
	// Never means that it refuses it until somebody changes the budgets or what they depend on.
	Never planning.Severity = "never"
)

// Operation is how a pod is to go.
type Operation string

// The operations.
const (
	Delete Operation = "delete"
	Evict  Operation = "evict"
	// Drain is the eviction of all pods of a node by `kubectl drain`.
	Drain Operation = "drain"
)

// Policies is the resource of the policy.
const Policies permission.Resource = "validatingadmissionpolicies.admissionregistration.k8s.io"

// DisruptionInput is everything that decides whether pods can be deleted or evicted, as far as it could be read.
type DisruptionInput struct {
	Operation Operation
	// Name is that of the pod or of the node.
	Name string
	// Pods is the pod, or those of the node.
	Pods []*corev1.Pod
	// Budgets are the PodDisruptionBudgets of the namespaces of the pods, and Markers their markers.
	Budgets []*policyv1.PodDisruptionBudget
	Markers []*v1alpha1.PodProbeMarker
	// Guards are the guards of the pods, as far as they have some.
	Guards map[types.NamespacedName]*probestatus.Guard
	// Others are pods that the only budget of one pod selects, to name those that are not ready.
	Others []*corev1.Pod
	// Policy and Binding are those of guards, or nil if there is none.
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Unread are the resources that could not be read.
	Unread map[permission.Resource]permission.Missing
	// Now is the current time.
	Now time.Time
}

// DisruptionExplanation is the answer for a pod or a node. It has one step for each pod.
type DisruptionExplanation struct {
	Operation Operation `json:"operation"`
	// Namespace and Pod identify the pod. They are empty for a node.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	// Free is whether the API server refuses it for no pod.
	Free bool `json:"free"`
	Answer
}

// disruption answers for the pods.
type disruption struct {
	DisruptionInput
	// flags are those that `kubectl drain` needs.
	flags sets.Set[string]
	// spent is how many of the disruptions that a budget permits are those of earlier pods.
	spent map[*policyv1.PodDisruptionBudget]int32
}

// Disruption explains whether pods can be deleted or evicted now, and else what frees them. The rules are those of the API server,
// and of `kubectl drain`.
func Disruption(in DisruptionInput) DisruptionExplanation {
	d := &disruption{in, sets.New[string](), map[*policyv1.PodDisruptionBudget]int32{}}
	slices.SortFunc(d.Budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	x := DisruptionExplanation{Operation: in.Operation}
	if in.Operation == Drain {
		x.Node = in.Name
	} else if len(in.Pods) > 0 {
		x.Namespace, x.Pod = in.Pods[0].Namespace, in.Name
	}
	counts := map[planning.Severity]int{}
	for _, pod := range in.Pods {
		step := d.step(pod)
		step.Title = "Pod " + pod.Namespace + "/" + pod.Name
		counts[step.Verdict]++
		x.Steps = append(x.Steps, step)
	}
	slices.SortStableFunc(x.Steps, func(a, b Step) int {
		if a.Verdict != b.Verdict {
			return slices.Index(order(), a.Verdict) - slices.Index(order(), b.Verdict)
		}
		return strings.Compare(a.Title, b.Title)
	})
	x.Free = counts[Never]+counts[Later] == 0
	if !x.Free {
		x.Next = x.Steps[0].Next
	}
	if in.Operation != Drain {
		x.Conclusion = upper(x.Steps[0].Verdict) + ": " + x.Steps[0].Text
		return x
	}
	x.Conclusion = fmt.Sprintf("%d go now, %d wait, %d never", counts[Now], counts[Later], counts[Never])
	if stay := counts[Info]; stay > 0 {
		x.Conclusion += fmt.Sprintf("; drain leaves %d", stay)
	}
	if x.Free {
		x.Next = strings.Join(append([]string{"kubectl drain", in.Name}, sets.List(d.flags)...), " ")
	}
	return x
}

// order returns the verdicts in the order of the steps.
func order() []planning.Severity { return []planning.Severity{Never, Later, Now, Info} }

func (d *disruption) step(pod *corev1.Pod) Step {
	switch d.Operation {
	case Delete:
		return d.deletion(pod)
	case Drain:
		return d.drain(pod)
	}
	return d.eviction(pod)
}

// deletion answers for DELETE, which the admission policy of guards decides.
func (d *disruption) deletion(pod *corev1.Pod) Step {
	var guards []*policyv1.PodDisruptionBudget
	for _, budget := range d.Budgets {
		if budget.Namespace == pod.Namespace && guard.New([]*policyv1.PodDisruptionBudget{budget}).Deletion(pod) != "" {
			guards = append(guards, budget)
		}
	}
	missing, unread := d.Unread[Policies]
	switch {
	case pod.DeletionTimestamp != nil:
		return ending()
	case len(guards) == 0:
		return Step{Verdict: Now, Text: "no guard protects it"}
	case !unread && !d.enforced():
		return Step{
			Verdict:  Now,
			Text:     fmt.Sprintf("PodDisruptionBudget %s does not hold it: the policy %s is not installed with its binding", names(guards), guard.Policy),
			Evidence: []string{"with it, the guard would protect the pod: set policies.guards.enabled=true in the chart"},
		}
	}
	s := Step{Verdict: Later, Text: fmt.Sprintf("PodDisruptionBudget %s guards it", names(guards)), Next: describe(guards[0])}
	for _, budget := range guards {
		s.Evidence = append(append(s.Evidence, d.guarded(pod, budget)...), d.frees(pod, budget)...)
	}
	s.Evidence = append(s.Evidence, atOnce, "nodes, the scheduler, controllers that clean up, and policies.guards.exemptUsers of the chart are exempt")
	if unread {
		s.Evidence = append(s.Evidence, fmt.Sprintf("if the policy %s is installed: %s", guard.Policy, missing))
	}
	return s
}

// atOnce is what frees a pod from guards.
const atOnce = "the label " + v1alpha1.GuardExemptKey + " of the pod frees it at once"

// ending answers for a pod whose deletion has been requested.
func ending() Step { return Step{Verdict: Now, Text: "it is being deleted already"} }

// enforced reports whether the API server refuses what the policy of guards forbids.
func (d *disruption) enforced() bool {
	return d.Policy != nil && d.Binding != nil && d.Binding.Spec.PolicyName == guard.Policy &&
		slices.Contains(d.Binding.Spec.ValidationActions, admissionregistrationv1.Deny)
}

// eviction answers for the subresource eviction, as the API server decides it.
func (d *disruption) eviction(pod *corev1.Pod) Step {
	budgets := d.Selecting(pod)
	switch phase := pod.Status.Phase; {
	case pod.DeletionTimestamp != nil:
		return ending()
	case planning.Finished(pod) || phase == corev1.PodPending:
		return Step{Verdict: Now, Text: fmt.Sprintf("evictions of a pod that is %s ignore budgets", phase)}
	case len(budgets) == 0:
		return Step{Verdict: Now, Text: "no PodDisruptionBudget selects it"}
	case len(budgets) > 1:
		return Step{
			Verdict:  Never,
			Text:     fmt.Sprintf("PodDisruptionBudgets %s select it, and the API server refuses evictions of a pod with more than one", names(budgets)),
			Evidence: []string{"it is free when only one of them selects it"}, Next: describe(budgets[0]),
		}
	}
	return d.budget(pod, budgets[0])
}

// Selecting returns the budgets that count for the eviction of a pod.
func (in *DisruptionInput) Selecting(pod *corev1.Pod) (budgets []*policyv1.PodDisruptionBudget) {
	for _, budget := range in.Budgets {
		if budget.Namespace != pod.Namespace {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil && selector.Matches(labels.Set(pod.Labels)) {
			budgets = append(budgets, budget)
		}
	}
	return budgets
}

// budget answers for the eviction of a pod that only this budget selects.
func (d *disruption) budget(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) Step {
	status, name, unready := &budget.Status, "PodDisruptionBudget "+budget.Name, !planning.Ready(pod)
	always := budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	failed := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	numbers := fmt.Sprintf("needs %s and has %d", text.Count(status.DesiredHealthy, "healthy pod"), status.CurrentHealthy)
	switch {
	case unready && always:
		return Step{Verdict: Now, Text: fmt.Sprintf("it is not ready, and %s has unhealthyPodEvictionPolicy AlwaysAllow", name)}
	case unready && status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0:
		return Step{Verdict: Now, Text: fmt.Sprintf("it is not ready, and %s %s", name, numbers)}
	case failed != nil && failed.Status == metav1.ConditionFalse && failed.Reason == policyv1.SyncFailedReason:
		return Step{
			Verdict: Never, Text: fmt.Sprintf("%s cannot be computed: %s", name, failed.Message), Next: describe(budget),
			Evidence: []string{
				"maxUnavailable and percentages need pods with a controller that has the subresource scale: minAvailable with a number does not",
			},
		}
	case status.ObservedGeneration < budget.Generation:
		return Step{Verdict: Later, Text: name + " is not computed yet by kube-controller-manager", Next: describe(budget)}
	case len(status.DisruptedPods) > ledger.Most:
		return Step{Verdict: Later, Text: name + " has too many evictions that kube-controller-manager has not confirmed", Next: describe(budget)}
	case status.DisruptionsAllowed > d.spent[budget]:
		d.spent[budget]++
		return Step{Verdict: Now, Text: fmt.Sprintf("%s permits %s", name, text.Count(status.DisruptionsAllowed, "disruption"))}
	case status.DisruptionsAllowed > 0:
		return Step{
			Verdict: Later, Text: fmt.Sprintf("%s permits %s, for other pods of the node", name, text.Count(status.DisruptionsAllowed, "disruption")),
			Next: describe(budget),
		}
	}
	s := Step{Verdict: Later, Text: fmt.Sprintf("%s %s", name, numbers), Next: describe(budget), Evidence: d.frees(pod, budget)}
	if guard.Is(budget.Labels) {
		s.Text, s.Evidence = name+" guards it", append(d.guarded(pod, budget), s.Evidence...)
		if excludesExempt(budget) {
			s.Evidence = append(s.Evidence, atOnce)
		}
		return s
	}
	if status.DesiredHealthy >= status.ExpectedPods {
		s.Evidence = append(s.Evidence, "it permits none even if all of its pods are ready: it needs more pods, or other numbers")
	}
	if unready := d.unready(); len(unready) > 0 {
		s.Evidence = append(s.Evidence, "not ready: "+text.List(unready, text.MaxNames))
	}
	return s
}

// unready returns the names of the other pods that are not ready.
func (d *disruption) unready() (found []string) {
	for _, pod := range d.Others {
		if !planning.Ready(pod) && planning.Active(pod) {
			found = append(found, pod.Name)
		}
	}
	slices.Sort(found)
	return found
}

// guarded returns for how long the guard has protected the pod, and its maximum.
func (d *disruption) guarded(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) (lines []string) {
	current := d.Guards[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	if current != nil && current.Name == budget.Name && !current.Since.IsZero() {
		lines = append(lines, "it has done so for "+duration.HumanDuration(max(0, d.Now.Sub(current.Since.Time))))
	}
	if d.released(pod) && (d.Operation == Delete || excludesExempt(budget)) {
		const key = v1alpha1.GuardMaxDurationKey
		lines = append(lines, fmt.Sprintf("Seamark's manager frees it after %s: %s", budget.Annotations[key], key))
	}
	return lines
}

// released reports whether the manager releases the pod when its guards reach their maximum.
func (d *disruption) released(pod *corev1.Pod) bool {
	var guards []*policyv1.PodDisruptionBudget
	for _, budget := range d.Budgets {
		if budget.Namespace == pod.Namespace && guard.Is(budget.Labels) {
			guards = append(guards, budget)
		}
	}
	return guard.Limits(guards).Decide(pod, nil, d.Now).Limit.Max > 0
}

// frees returns which labels the budget no longer selects: those that markers write, or for a guard without these, all.
func (d *disruption) frees(pod *corev1.Pod, budget *policyv1.PodDisruptionBudget) (lines []string) {
	selector, _ := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	requirements, _ := selector.Requirements()
	var others []string
	for i := range requirements {
		r := &requirements[i]
		if r.Key() == v1alpha1.GuardExemptKey {
			continue
		}
		others = append(others, r.String())
		if writer := d.writer(pod, r.Key()); writer != "" {
			lines = append(lines, fmt.Sprintf("it is free when the label does not match %q, which %s sets: %s", r.String(), writer, current(pod, r.Key())))
		}
	}
	if len(lines) == 0 && guard.Is(budget.Labels) {
		line := fmt.Sprintf("it is free when its labels do not match %q", strings.Join(others, ","))
		if _, unread := d.Unread[permission.Markers]; !unread {
			line += ", which no marker sets"
		}
		lines = append(lines, line)
	}
	return lines
}

// current returns the label of the pod.
func current(pod *corev1.Pod, key string) string {
	if value, found := pod.Labels[key]; found {
		return fmt.Sprintf("it is %q", value)
	}
	return "the pod does not have it"
}

// writer returns the first probe that sets the label of the pod, empty if none does.
func (d *disruption) writer(pod *corev1.Pod, key string) string {
	for _, m := range sorted(d.Markers) {
		for i := range m.Spec.Probes {
			if m.Namespace == pod.Namespace && selects(m, pod.Labels) && slices.Contains(mark.Declared(&m.Spec.Probes[i]), mark.Label(key)) {
				return "the probe " + identity.ID{Marker: m.Name, Probe: m.Spec.Probes[i].Name}.String()
			}
		}
	}
	return ""
}

// excludesExempt reports whether the budget does not select pods with the label that frees them.
func excludesExempt(budget *policyv1.PodDisruptionBudget) bool {
	return budget.Spec.Selector != nil && slices.ContainsFunc(budget.Spec.Selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == v1alpha1.GuardExemptKey && r.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}

// names returns the names of budgets in one line.
func names(budgets []*policyv1.PodDisruptionBudget) string {
	var all []string
	for _, budget := range budgets {
		all = append(all, budget.Name)
	}
	return text.List(all, text.MaxNames)
}

// describe returns the command that shows a budget.
func describe(budget *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("kubectl -n %s describe pdb %s", budget.Namespace, budget.Name)
}
