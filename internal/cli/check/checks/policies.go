// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

const (
	// authorPolicy is the policy for authors of markers, which may be left out.
	authorPolicy = "seamark-marker-author"
	// podsPolicy is the policy for seamark-workloads, and installed with it.
	podsPolicy = "seamark-workloads-pods"
	// unlabelledBinding is its binding for deletions and status writes of pods without the label seamark.dev/workload.
	unlabelledBinding = "seamark-workloads-pod-deletion-and-status"
	// objectsPolicy is the policy for its revisions and claims, and grantsPolicy for who gives it its rights.
	objectsPolicy, grantsPolicy = "seamark-workloads-objects", "seamark-workloads-grants"
	// hookPolicy is the policy for webhook configurations, plansPolicy that for the manager's plans, and marksPolicy that for
	// the marks of pods in excluded namespaces.
	hookPolicy  = "seamark-webhook-configurations"
	plansPolicy = "seamark-manager-plans"
	marksPolicy = "seamark-manager-pods"
	// guardsPolicy and guardUpdatesPolicy are those of guards, and guardLabelsPolicy that for who writes guards. They may be left
	// out.
	guardsPolicy, guardUpdatesPolicy, guardLabelsPolicy = guard.Policy, "seamark-guard-updates", "seamark-guard-labels"
)

// policyNames returns the names of the policies that the installation should have.
func (f *Facts) policyNames() []string {
	all := []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", plansPolicy, marksPolicy, hookPolicy, authorPolicy,
		guardsPolicy, guardUpdatesPolicy, guardLabelsPolicy}
	if f.hasWorkloads() {
		all = append(all, podsPolicy, objectsPolicy, grantsPolicy)
	}
	enabled, _ := f.enabled()
	for _, kind := range enabled {
		if kind.Policy.Name != "" {
			all = append(all, kind.Policy.Name)
		}
	}
	return all
}

// kindOf returns the kind whose controller the policy is installed with, nil if it belongs to no kind.
func kindOf(policy string) *kinds.Kind {
	for _, kind := range kinds.Table() {
		if kind.Policy.Name == policy {
			return &kind
		}
	}
	return nil
}

// policies checks that the admission policies exist, compile and are enforced.
func (f *Facts) policies() []Result {
	if err := firstError(f.Policies.Err, f.Bindings.Err); err != nil {
		return unreadable("policies", err)
	}
	var results []Result
	for _, name := range f.policyNames() {
		results = append(results, f.policy(name)...)
	}
	return results
}

func (f *Facts) policy(name string) []Result {
	check, result, fix := "policy/"+name, failed, "helm upgrade, or kubectl apply --server-side -k config/policies"
	switch name {
	case podsPolicy, objectsPolicy, grantsPolicy:
		fix = "helm upgrade, or kubectl apply --server-side -k config/workloads"
	case guardsPolicy, guardUpdatesPolicy, guardLabelsPolicy:
		result, fix = warning, "set policies.guards.enabled=true in the chart, or kubectl apply --server-side -k config/policies"
	case authorPolicy:
		result, fix = warning, "set policies.markerAuthor.enforcement=Deny in the chart, or kubectl apply --server-side -k config/policies"
	}
	if kind := kindOf(name); kind != nil {
		fix = "helm upgrade, or kubectl apply --server-side -k config/" + kind.ConfigFolder
		if kind.Policy.ChartValue != "" {
			result, fix = warning, "set "+kind.Policy.ChartValue+"=Deny in the chart, or kubectl apply --server-side -k config/"+kind.ConfigFolder
		}
	}
	policy := named(f.Policies.Value, name)
	if policy == nil {
		return result(check, fix, "the policy does not exist: %s", withoutPolicy(name))
	}
	if checked := policy.Status.TypeChecking; checked != nil && len(checked.ExpressionWarnings) > 0 {
		w := checked.ExpressionWarnings[0]
		line, _, _ := strings.Cut(w.Warning, "\n")
		return warning(check, "upgrade the CRDs and the policies together: helm upgrade", "the API server cannot check the type of %s: %s", w.FieldRef, line)
	}
	actions, missing := f.actions(name)
	effect := strings.Join(sets.List(actions), " and ")
	switch {
	case missing != "":
		return result(check, fix, "%s: %s", missing, withoutPolicy(name))
	case actions.Has(string(admissionregistrationv1.Deny)):
		return ok(check, "enforced (%s)", effect)
	}
	return result(check, fix, "violations are not rejected (%s): %s", effect, withoutPolicy(name))
}

// actions returns what the API server does with every violation of the policy, or why a binding is missing.
func (f *Facts) actions(policy string) (common sets.Set[string], missing string) {
	if policy != podsPolicy {
		common = f.bound(func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy
		})
		if common.Len() == 0 {
			missing = "the policy has no binding"
		}
		return common, missing
	}
	// Each of its bindings applies to a part of the writes.
	for _, name := range []string{podsPolicy, unlabelledBinding} {
		actions := f.bound(func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == policy && b.Name == name
		})
		if actions.Len() == 0 {
			return nil, "the policy has no binding " + name
		}
		if common == nil {
			common = actions
		}
		common = common.Intersection(actions)
	}
	return common, ""
}

// bound returns the actions of the bindings that match.
func (f *Facts) bound(matches func(*admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool) sets.Set[string] {
	actions := sets.New[string]()
	for i := range f.Bindings.Value {
		if binding := &f.Bindings.Value[i]; matches(binding) {
			for _, action := range binding.Spec.ValidationActions {
				actions.Insert(string(action))
			}
		}
	}
	return actions
}

// withoutPolicy returns the consequence of a policy that has no effect.
func withoutPolicy(name string) string {
	if kind := kindOf(name); kind != nil {
		return kind.Policy.Risk
	}
	switch name {
	case authorPolicy:
		return "who can write a marker can run commands in the pods of the namespace, label them and read their HTTP responses"
	case podsPolicy:
		return "seamark-workloads could write all pods of the namespaces that have sets"
	case objectsPolicy:
		return "seamark-workloads could write all claims and revisions there"
	case grantsPolicy:
		return "seamark-workloads could write where its policy does not apply"
	case hookPolicy:
		return "the manager and seamark-workloads could have objects of any kind sent elsewhere"
	case plansPolicy:
		return "the manager could run commands in the pods of kube-system"
	case guardsPolicy:
		return "guards protect pods from evictions only"
	case guardUpdatesPolicy:
		return "guards do not protect pods from new images"
	case guardLabelsPolicy:
		return "a guard with a wrong label is accepted, and is none"
	case marksPolicy:
		return "the manager could write the status and the labels of the pods of kube-system"
	default:
		return "an agent could write for other nodes"
	}
}

// webhook checks that the webhook for pods on virtual nodes has certificates.
func (f *Facts) webhook() []Result {
	const name = "webhook"
	if f.Webhook.Err != nil {
		return unreadable(name, f.Webhook.Err)
	}
	if f.Webhook.Value == nil {
		return nil
	}
	for _, each := range f.Webhook.Value.Webhooks {
		if len(each.ClientConfig.CABundle) == 0 {
			return failed(name, f.logs("manager"),
				"webhook %s has no CA bundle, so its calls fail and pods on virtual nodes are annotated late", each.Name)
		}
	}
	return ok(name, "the webhook for pods on virtual nodes has a CA bundle")
}
