// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config/crd"
)

// TestPortsHaveNoRules checks that values which are a number or a text have no CEL rules:
// Kubernetes 1.32 estimates the cost of such a rule as if the text had no maximum length, and
// rejects the CRD.
func TestPortsHaveNoRules(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.PodProbeMarkers(), &definition); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(path string, s *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s *apiextensionsv1.JSONSchemaProps) {
		if s.XIntOrString {
			found++
			if len(s.XValidations) > 0 {
				t.Errorf("%s has %d rules", path, len(s.XValidations))
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
		walk("", version.Schema.OpenAPIV3Schema)
	}
	if found != 2 {
		t.Errorf("found %d ports, want those of httpGet and tcpSocket", found)
	}
}
