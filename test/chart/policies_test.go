// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the binding's actions (-want +got):\n%s", diff)
			}
			if _, there := objects[policy]; there != (want != nil) {
				t.Errorf("the policy exists: %t", there)
			}
			for _, name := range []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", "seamark-workloads-pods"} {
				k := key{Kind: binding.Kind, Name: name}
				if diff := cmp.Diff([]any{"Deny", "Audit"}, at(objects[k], []string{"spec", "validationActions"})); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}
