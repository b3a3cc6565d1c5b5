// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The share of the API server's limits that the estimated cost of the rules may use. The margin
// is for estimates that change with the version of Kubernetes.
const (
	ruleShare = 0.35
	crdShare  = 0.2
)

// oldestSupported is the version of Kubernetes in which all rules must compile: an API server
// accepts a new rule only if the previous version can compile it too.
func oldestSupported() *version.Version { return version.MajorMinor(1, 31) }

// ruleCost is the API server's estimate of the cost of one rule in the largest object.
type ruleCost struct {
	path string
	cost uint64
}

func TestRuleCosts(t *testing.T) {
	t.Parallel()
	crds, err := env.ReadCRDs("")
	expect.NoError(t, err)
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Plural, func(t *testing.T) {
			t.Parallel()
			costs, err := ruleCosts(crd)
			expect.NoError(t, err)
			var total uint64
			for _, rule := range costs {
				total += rule.cost
				if float64(rule.cost) > ruleShare*validation.StaticEstimatedCostLimit {
					t.Errorf("%s costs %d, more than %.0f %% of the limit of %d",
						rule.path, rule.cost, 100*ruleShare, validation.StaticEstimatedCostLimit)
				}
				t.Logf("%s: %.1f %% of the limit of a rule", rule.path, 100*float64(rule.cost)/validation.StaticEstimatedCostLimit)
			}
			t.Logf("all: %.1f %% of the limit of a CRD", 100*float64(total)/validation.StaticEstimatedCRDCostLimit)
			if float64(total) > crdShare*validation.StaticEstimatedCRDCostLimit {
				t.Errorf("all rules cost %d, more than %.0f %% of the limit of %d",
					total, 100*crdShare, validation.StaticEstimatedCRDCostLimit)
			}
		})
	}
}

// ruleCosts compiles the rules of the CRD's first version as the oldest supported API server
// does and returns the estimated cost of each.
func ruleCosts(crd *apiextensionsv1.CustomResourceDefinition) ([]ruleCost, error) {
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		return nil, fmt.Errorf("convert schema: %w", err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return costsBelow(structural, "", 1, true)
}

func costsBelow(s *schema.Structural, path string, times uint64, root bool) ([]ruleCost, error) {
	results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(oldestSupported()), cel.NewExpressionsEnvLoader())
	if err != nil {
		return nil, fmt.Errorf("compile the rules of %s: %w", path, err)
	}
	var costs []ruleCost
	for i, result := range results {
		if result.Error != nil {
			return nil, fmt.Errorf("compile rule %d of %s: %w", i, path, result.Error)
		}
		costs = append(costs, ruleCost{fmt.Sprintf("%s rule %d", path, i), result.MaxCost * min(times, result.MaxCardinality)})
	}
	below := map[string]*schema.Structural{}
	for name := range s.Properties {
		property := s.Properties[name]
		below[path+"."+name] = &property
	}
	switch {
	case s.Items != nil:
		below[path+"[]"] = s.Items
		times = scaled(times, s.ValueValidation.MaxItems)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		below[path+"{}"] = s.AdditionalProperties.Structural
		times = scaled(times, s.ValueValidation.MaxProperties)
	}
	for name, child := range below {
		more, err := costsBelow(child, name, times, false)
		if err != nil {
			return nil, err
		}
		costs = append(costs, more...)
	}
	return costs, nil
}

// scaled returns how often an element of a list or map with at most bound elements can occur if
// the list or map occurs times times. Without a bound, the size of a request is the limit.
func scaled(times uint64, bound *int64) uint64 {
	if bound == nil {
		return uint64(celconfig.MaxRequestSizeBytes)
	}
	return times * uint64(*bound)
}
