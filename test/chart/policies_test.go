// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestMarkerAuthorEnforcement checks that the value changes the binding of this policy and no
// other.
func TestMarkerAuthorEnforcement(t *testing.T) {
	helm := tool(t, "helm")
	policy := key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-marker-author"}
	binding := key{Kind: "ValidatingAdmissionPolicyBinding", Name: "seamark-marker-author"}
	for enforcement, want := range map[string]any{
		"Warn": []any{"Warn", "Audit"},
		"Deny": []any{"Deny", "Audit"},
		"Off":  nil,
	} {
		t.Run(enforcement, func(t *testing.T) {
			objects := parse(t, template(t, helm, "ns", "--set", workloads+",policies.markerAuthor.enforcement="+enforcement))
			got := at(objects[binding], []string{"spec", "validationActions"})
			expect.Equal(t, want, got, "the binding's actions")
			if _, there := objects[policy]; there != (want != nil) {
				t.Errorf("the policy exists: %t", there)
			}
			for _, name := range []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", "seamark-workloads-pods"} {
				k := key{Kind: binding.Kind, Name: name}
				expect.Equal(t, []any{"Deny", "Audit"}, at(objects[k], []string{"spec", "validationActions"}), "%s", name)
			}
		})
	}
}

// TestAuthorPolicies checks that all policies for authors deny by default, and that the trusted users and the
// excluded namespaces reach every policy that has them.
func TestAuthorPolicies(t *testing.T) {
	const trusted = "system:serviceaccount:games:controller"
	objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", workloads+",sidecarSets.enabled=true,workloads.controllers={imagepulljob},"+
		"policies.markerAuthor.trusted={"+trusted+",ann},manager.excludedNamespaces={kube-system,ops},workloads.excludedNamespaces={kube-system,db}"))
	for _, name := range []string{"seamark-marker-author", "seamark-sidecarset-author", "seamark-imagepulljob-author"} {
		binding := objects[key{Kind: "ValidatingAdmissionPolicyBinding", Name: name}]
		expect.Equal(t, []any{"Deny", "Audit"}, at(binding, []string{"spec", "validationActions"}), "actions of %s", name)
		policy := objects[key{Kind: "ValidatingAdmissionPolicy", Name: name}]
		want := `!(request.userInfo.username in ["` + trusted + `","ann"])`
		if got := at(policy, []string{"spec", "matchConditions", "0", "expression"}); got != want {
			t.Errorf("match condition of %s: %v, want %s", name, got, want)
		}
	}
	plans := objects[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-plans"}]
	if got, want := at(plans, []string{"spec", "variables", "0", "expression"}), `["kube-system","ops"]`; got != want {
		t.Errorf("excluded namespaces of the policy: %v, want %s", got, want)
	}
	marks := objects[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-pods"}]
	if diff := cmp.Diff([]any{"kube-system", "ops"}, at(marks, steps("spec.matchConstraints.namespaceSelector.matchExpressions.0.values"))); diff != "" {
		t.Errorf("namespaces of the policy of marks (-want +got):\n%s", diff)
	}
	all := parse(t, template(t, tool(t, "helm"), "ns", "--set", "manager.excludedNamespaces=null"))
	none := all[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-pods"}]
	if diff := cmp.Diff([]any{""}, at(none, steps("spec.matchConstraints.namespaceSelector.matchExpressions.0.values"))); diff != "" {
		t.Errorf("namespaces of the policy of marks if none is excluded (-want +got):\n%s", diff)
	}
	config, _ := at(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-manager"}], []string{"data", "manager.yaml"}).(string)
	if !strings.Contains(config, "excludedNamespaces:\n- kube-system\n- ops\n") {
		t.Errorf("configuration of the manager without the excluded namespaces:\n%s", config)
	}
	config, _ = at(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-workloads"}], []string{"data", "workloads.yaml"}).(string)
	if !strings.Contains(config, "excludedNamespaces:\n- kube-system\n- db\n") {
		t.Errorf("configuration of seamark-workloads without the excluded namespaces:\n%s", config)
	}
}
