// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// authorPolicy is the policy for authors of markers, which may warn or be left out.
	authorPolicy = "seamark-marker-author"
	// podsPolicy is the policy for seamark-workloads, and installed with it.
	podsPolicy = "seamark-workloads-pods"
)

// policyNames returns the names of the policies that the installation should have.
func (f *Facts) policyNames() []string {
	all := []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", authorPolicy}
	if f.deployment(workloadsName) != nil {
		all = append(all, podsPolicy)
	}
	return all
}

// policies checks that the admission policies exist, compile and are enforced.
func (f *Facts) policies() []Result {
	if err := firstError(f.Policies.Err, f.Bindings.Err); err != nil {
		return []Result{unreadable("policies", err)}
	}
	var results []Result
	for _, name := range f.policyNames() {
		results = append(results, f.policy(name))
	}
	return results
}

func (f *Facts) policy(name string) Result {
	r := Result{Check: "policy/" + name, Verdict: Failed, Fix: "helm upgrade, or kubectl apply --server-side -k config/policies"}
	switch name {
	case podsPolicy:
		r.Fix = "helm upgrade, or kubectl apply --server-side -k config/workloads"
	case authorPolicy:
		r.Verdict = Warning
		r.Fix = "if users may not run commands in pods, set policies.markerAuthor.enforcement=Deny in the chart"
	}
	i := slices.IndexFunc(f.Policies.Value, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if i < 0 {
		r.Evidence = "the policy does not exist: " + withoutPolicy(name)
		return r
	}
	if checked := f.Policies.Value[i].Status.TypeChecking; checked != nil && len(checked.ExpressionWarnings) > 0 {
		w := checked.ExpressionWarnings[0]
		r.Evidence = fmt.Sprintf("the API server cannot check the type of %s: %s", w.FieldRef, firstLine(w.Warning))
		r.Verdict, r.Fix = Warning, "upgrade the CRDs and the policies together: helm upgrade"
		return r
	}
	var actions []string
	for _, binding := range f.Bindings.Value {
		if binding.Spec.PolicyName == name {
			for _, action := range binding.Spec.ValidationActions {
				actions = append(actions, string(action))
			}
		}
	}
	slices.Sort(actions)
	actions = slices.Compact(actions)
	effect := strings.Join(actions, " and ")
	switch {
	case slices.Contains(actions, string(admissionregistrationv1.Deny)):
		return ok(r.Check, "enforced (%s)", effect)
	case len(actions) == 0:
		r.Evidence = "the policy has no binding: " + withoutPolicy(name)
	case name == authorPolicy:
		return ok(r.Check, "reports violations (%s), and does not reject them", effect)
	default:
		r.Evidence = fmt.Sprintf("violations are not rejected (%s): %s", effect, withoutPolicy(name))
	}
	return r
}

// withoutPolicy returns the consequence of a policy that has no effect.
func withoutPolicy(name string) string {
	switch name {
	case authorPolicy:
		return "who can write a marker can run commands in the pods of the namespace, label them and read their HTTP responses"
	case podsPolicy:
		return "seamark-workloads could write all pods"
	default:
		return "an agent could write for other nodes"
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// webhook checks that the webhook for pods on virtual nodes has certificates.
func (f *Facts) webhook() []Result {
	const name = "webhook"
	if f.Webhook.Err != nil {
		return []Result{unreadable(name, f.Webhook.Err)}
	}
	if f.Webhook.Value == nil {
		return nil
	}
	for _, each := range f.Webhook.Value.Webhooks {
		if len(each.ClientConfig.CABundle) == 0 {
			return []Result{{
				Check: name, Verdict: Failed,
				Evidence: fmt.Sprintf("webhook %s has no CA bundle, so its calls fail and pods on virtual nodes are annotated late", each.Name),
				Fix:      fmt.Sprintf("kubectl -n %s logs -l %s=manager --tail=50", f.Namespace, componentLabel),
			}}
		}
	}
	return []Result{ok(name, "the webhook for pods on virtual nodes has a CA bundle")}
}
