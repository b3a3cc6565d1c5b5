// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestCRDsFollowTheConventions checks that every property has a description and every list a
// type, that a status is a subresource, and the short names.
func TestCRDsFollowTheConventions(t *testing.T) {
	t.Parallel()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	shortNames := map[string][]string{
		"podprobemarkers": {"ppm"}, "nodepodprobes": {"npp"}, "probeplans": {"ppl"}, "probereports": {"prr"},
		"clonesets": {"clone"}, "statefulsets": {"sts", "asts"}, "advancedcronjobs": {"acj"}, "daemonsets": {"daemon", "ads"}, "broadcastjobs": {"bcj"},
	}
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Plural, func(t *testing.T) {
			t.Parallel()
			if want := shortNames[crd.Spec.Names.Plural]; !slices.Equal(crd.Spec.Names.ShortNames, want) {
				t.Errorf("short names %v, want %v", crd.Spec.Names.ShortNames, want)
			}
			version := crd.Spec.Versions[0]
			if len(version.AdditionalPrinterColumns) == 0 {
				t.Error("no printer columns")
			}
			properties := version.Schema.OpenAPIV3Schema.Properties
			_, status := properties["status"]
			if subresource := version.Subresources != nil && version.Subresources.Status != nil; subresource != status {
				t.Errorf("has a status: %t, has a status subresource: %t", status, subresource)
			}
			for part, property := range properties {
				if part == "apiVersion" || part == "kind" || part == "metadata" {
					continue
				}
				for _, problem := range schemaProblems(part, property, false) {
					t.Error(problem)
				}
			}
		})
	}
}

// schemaProblems returns the problems of a property and those below it. The fields of types of Kubernetes have its
// descriptions, or none.
func schemaProblems(path string, schema apiextensionsv1.JSONSchemaProps, embedded bool) []string {
	var problems []string
	name := path[strings.LastIndex(path, ".")+1:]
	if !embedded && !beginsWith(schema.Description, name) && !strings.HasSuffix(name, "]") {
		problems = append(problems, path+": the description does not begin with the name")
	}
	embedded = embedded || slices.Contains([]string{"probe", "startup", "jobTemplate", "broadcastJobTemplate", "active"}, name) || isOpen(&schema)
	if schema.Items != nil {
		if !embedded && schema.XListType == nil && !isOpen(schema.Items.Schema) {
			problems = append(problems, path+": list without a type")
		}
		problems = append(problems, schemaProblems(path+"[]", *schema.Items.Schema, embedded)...)
	}
	for property, below := range schema.Properties {
		problems = append(problems, schemaProblems(path+"."+property, below, embedded)...)
	}
	return problems
}

// isOpen reports whether the schema is that of a type of Kubernetes, whose later versions may have more fields.
func isOpen(schema *apiextensionsv1.JSONSchemaProps) bool {
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
}

func beginsWith(doc, name string) bool {
	first, _, _ := strings.Cut(doc, " ")
	return first == name
}
