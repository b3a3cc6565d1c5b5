// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config"
)

// TestUnionsHaveNoRules checks that values which are a number or a text have no CEL rules:
// Kubernetes 1.32 estimates the cost of most such rules as if the text had no maximum length, and
// rejects the CRD. They have a pattern and a maximum instead: a number that exceeds an int32 would
// stop the informers of all objects of the kind. The rule of reserved ordinals uses only functions
// whose cost does not depend on the length. Templates have only the types of Kubernetes, and no rules.
func TestUnionsHaveNoRules(t *testing.T) {
	for name, tc := range map[string]struct {
		crd  []byte
		want int
	}{
		"PodProbeMarker": {config.Definition("podprobemarkers.apps.kruise.io"), 2},
		"CloneSet":       {config.Definition("clonesets.apps.kruise.io"), 6},
		"StatefulSet":    {config.Definition("statefulsets.apps.kruise.io"), 5},
	} {
		t.Run(name, func(t *testing.T) { checkUnions(t, tc.crd, tc.want) })
	}
}

func checkUnions(t *testing.T, text []byte, want int) {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(path string, s *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if strings.HasSuffix(path, ".spec.template") || strings.HasSuffix(path, ".spec.volumeClaimTemplates[]") {
			return
		}
		if s.XIntOrString {
			found++
			if len(s.XValidations) > 0 && !strings.HasSuffix(path, ".spec.reserveOrdinals[]") {
				t.Errorf("%s has %d rules", path, len(s.XValidations))
			}
			if s.Pattern == "" || s.Maximum == nil || s.Minimum == nil {
				t.Errorf("%s has no pattern, no minimum or no maximum", path)
			}
		}
		for name := range s.Properties {
			property := s.Properties[name]
			walk(path+"."+name, &property)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(path+"[]", s.Items.Schema)
		}
	}
	for _, version := range definition.Spec.Versions {
		found = 0
		if walk(version.Name, version.Schema.OpenAPIV3Schema); found != want {
			t.Errorf("found %d fields of %s that are a number or a text, want %d", found, version.Name, want)
		}
	}
}
