// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// oldestSupported is the version of Kubernetes in which all expressions must compile: an API
// server accepts a new expression only if the previous version can compile it too.
func oldestSupported() *version.Version { return version.MajorMinor(1, 31) }

func TestExpressionsCompileInTheOldestSupportedVersion(t *testing.T) {
	t.Parallel()
	objects := env.Manifests(t, []string{"config/policies"})
	for _, path := range []string{"config/workloads/policy.yaml", "config/cronjobs/policy.yaml", "config/imagepulls/author.yaml", "config/sidecarsets/author.yaml"} {
		more := env.Manifests(t, []string{path})
		objects = append(objects, more...)
	}
	seen := 0
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		seen++
		t.Run(object.GetName(), func(t *testing.T) {
			t.Parallel()
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy, true))
			compile(t, policy)
		})
	}
	if want := 16; seen != want {
		t.Errorf("config/ has %d policies, want %d", seen, want)
	}
}

// compile compiles every expression of the policy, as the API server does.
func compile(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	set := environment.MustBaseEnvSet(oldestSupported())
	compiler, err := plugincel.NewCompositedCompiler(set)
	expect.NoError(t, err)
	// Message expressions have no authorizer.
	full, message := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, plugincel.OptionalVariableDeclarations{}
	for _, v := range policy.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, full, environment.NewExpressions)
		if result.Error != nil {
			t.Errorf("variable %s: %v", v.Name, result.Error)
		}
	}
	check := func(what plugincel.ExpressionAccessor, declared plugincel.OptionalVariableDeclarations) {
		if result := compiler.CompileCELExpression(what, declared, environment.NewExpressions); result.Error != nil {
			t.Errorf("%s: %v", what.GetExpression(), result.Error)
		}
	}
	for i := range policy.Spec.MatchConditions {
		check((*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]), full)
	}
	for _, v := range policy.Spec.Validations {
		check(&validating.ValidationCondition{Expression: v.Expression}, full)
		if v.MessageExpression != "" {
			check(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, message)
		}
	}
}
