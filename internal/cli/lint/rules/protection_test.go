// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestProtection(t *testing.T) {
	const label = "metadata: {name: a, labels: {policy.kruise.io/delete-protection: "
	for manifest, want := range map[string]string{
		"apiVersion: apps/v1\nkind: Deployment\n" + label + "Cascading}}":          "",
		"apiVersion: v1\nkind: Namespace\n" + label + "Always}}":                   "",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}":                     "",
		"apiVersion: v1\nkind: Namespace\n" + label + "Cascading}}":                "Cascading has the effect of Always for the kind Namespace, which has no spec.replicas",
		"apiVersion: apps/v1\nkind: DaemonSet\n" + label + "Cascading}}":           "Cascading has the effect of Always for the kind DaemonSet, which has no spec.replicas",
		"apiVersion: v1\nkind: ConfigMap\n" + label + "Always}}":                   "has no effect for the kind ConfigMap",
		"apiVersion: v1\nkind: Service\n" + label + "'true'}}":                     `"true" has no effect`,
		"apiVersion: seamark.dev/v1alpha1\nkind: ProbePlan\n" + label + "Always}}": "has no effect for the kind ProbePlan",
	} {
		var got []string
		for _, f := range new(Linter).Check(t.Context(), []document.File{{Name: "a.yaml", Content: []byte(manifest)}}).Findings {
			if f.Rule == ruleProtection.Name {
				got = append(got, f.Message)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\nfindings %q, want %q", manifest, got, want)
		}
	}
}

// TestProtectedKindsAreThoseOfThePolicy compares the kinds with the resources of the policy.
func TestProtectedKindsAreThoseOfThePolicy(t *testing.T) {
	content, err := os.ReadFile("../../../../config/policies/deletion.yaml")
	expect.NoError(t, err)
	policy, _, _ := strings.Cut(string(content), "\n---\n")
	parsed := &admissionv1.ValidatingAdmissionPolicy{}
	expect.NoError(t, yaml.Unmarshal([]byte(policy), parsed))
	var want, got []string
	for _, rule := range parsed.Spec.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			want = append(want, resource+"."+rule.APIGroups[0])
		}
	}
	scaled, others := protected()
	for _, kinds := range []map[string][]string{scaled, others} {
		for group, names := range kinds {
			for _, kind := range names {
				plural := strings.ToLower(kind) + "s"
				if strings.HasSuffix(kind, "s") {
					plural = strings.ToLower(kind) + "es"
				}
				got = append(got, plural+"."+group)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	expect.Equal(t, "kinds (-policy +lint)", want, got)
}
