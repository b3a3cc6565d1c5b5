// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/seamark-dev/seamark/internal/cli/check"
)

// TestBindingsOfPods checks that the policy of pods counts as enforced only if both of its bindings enforce it: each applies
// to a part of the writes.
func TestBindingsOfPods(t *testing.T) {
	type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	const (
		main, unlabelled = "seamark-workloads-pods", "seamark-workloads-pod-deletion-and-status"
		without          = ": seamark-workloads could write all pods of the namespaces that have sets"
	)
	remove := func(name string) func([]binding) []binding {
		return func(all []binding) []binding {
			return slices.DeleteFunc(all, func(b binding) bool { return b.Name == name })
		}
	}
	change := func(name string, edit func(b *binding)) func([]binding) []binding {
		return func(all []binding) []binding {
			edit(&all[slices.IndexFunc(all, func(b binding) bool { return b.Name == name })])
			return all
		}
	}
	audit := func(b *binding) { b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Audit"} }
	for name, test := range map[string]struct {
		edit func([]binding) []binding
		want string
	}{
		"both":                 {func(all []binding) []binding { return all }, "enforced (Audit and Deny)"},
		"main missing":         {remove(main), "the policy has no binding " + main + without},
		"unlabelled missing":   {remove(unlabelled), "the policy has no binding " + unlabelled + without},
		"main audits":          {change(main, audit), "violations are not rejected (Audit)" + without},
		"unlabelled audits":    {change(unlabelled, audit), "violations are not rejected (Audit)" + without},
		"unlabelled of others": {change(unlabelled, func(b *binding) { b.Spec.PolicyName = "other" }), "the policy has no binding " + unlabelled + without},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			runWorkloads(t, f, "")
			f.Bindings.Value = test.edit(f.Bindings.Value)
			results := check.Run(f)
			i := slices.IndexFunc(results, func(r check.Result) bool { return r.Check == "policy/"+main })
			if i < 0 || results[i].Evidence != test.want {
				t.Errorf("results %+v, want %q", results, test.want)
			}
		})
	}
}
