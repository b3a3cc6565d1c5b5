// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"math/rand/v2"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// guardMatcher returns the match conditions of a policy of guards, as the API server evaluates them.
func guardMatcher(t *testing.T, name string) matchconditions.Matcher {
	t.Helper()
	for _, object := range env.Manifests(t, []string{"config/policies/guards.yaml"}) {
		if object.GetKind() != "ValidatingAdmissionPolicy" || object.GetName() != name {
			continue
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, policy, true))
		var conditions []plugincel.ExpressionAccessor
		for i := range policy.Spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
		}
		compiled := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(oldestSupported())).CompileCondition(
			conditions, plugincel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Error(err)
		}
		return matchconditions.NewMatcher(compiled, policy.Spec.FailurePolicy, "policy", "validate", name)
	}
	t.Fatalf("config/policies/guards.yaml has no policy %s", name)
	return nil
}

// randomSelector returns nil, an empty selector, or one with up to three labels and expressions of few keys and values.
func randomSelector(r *rand.Rand) *metav1.LabelSelector {
	if r.IntN(20) == 0 {
		return nil
	}
	selector := &metav1.LabelSelector{}
	for range r.IntN(3) {
		selector.MatchLabels = randomLabels(r)
	}
	for range r.IntN(4) {
		e := metav1.LabelSelectorRequirement{
			Key:      randomKey(r),
			Operator: []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}[r.IntN(4)],
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			for range 1 + r.IntN(3) {
				e.Values = append(e.Values, randomValue(r))
			}
		}
		selector.MatchExpressions = append(selector.MatchExpressions, e)
	}
	return selector
}

func randomKey(r *rand.Rand) string   { return []string{"a", "b", "seamark.dev/c"}[r.IntN(3)] }
func randomValue(r *rand.Rand) string { return []string{"", "true", "false", "x-1"}[r.IntN(4)] }

// randomLabels returns up to two labels, or nil.
func randomLabels(r *rand.Rand) map[string]string {
	var set map[string]string
	for range r.IntN(3) {
		if set == nil {
			set = map[string]string{}
		}
		set[randomKey(r)] = randomValue(r)
	}
	return set
}

// TestSelectorsOfGuards compares the expressions of both policies, and the decision of planners, with the code that selects the pods
// of budgets.
func TestSelectorsOfGuards(t *testing.T) {
	t.Parallel()
	deletions, updates := guardMatcher(t, "seamark-guards"), guardMatcher(t, "seamark-guard-updates")
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same sequence in every run.
	selected := 0
	for range 5000 {
		pod := builders.Pod("games", "game").Build()
		pod.Labels = randomLabels(r)
		changed := pod.DeepCopy()
		changed.Spec.Containers[0].Image = "other"
		budget := &policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "games", Name: "guard", Labels: map[string]string{v1alpha1.GuardKey: "true", v1alpha1.GuardUpdateKey: "true"},
			},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: randomSelector(r)},
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		expect.NoError(t, err)
		want := selector.Matches(labels.Set(pod.Labels))
		if want {
			selected++
		}
		guards := guard.New([]*policyv1.PodDisruptionBudget{budget})
		for what, got := range map[string]bool{
			"deletion":            matches(t, deletions, pod, nil, budget),
			"update":              matches(t, updates, pod, changed, budget),
			"deletion by planner": guards.Deletion(pod) != "",
			"update by planner":   guards.Update(pod) != "",
		} {
			if got != want {
				t.Fatalf("%s of a pod with the labels %v and the selector %s: guarded %t, want %t", what, pod.Labels,
					metav1.FormatLabelSelector(budget.Spec.Selector), got, want)
			}
		}
	}
	if least := 500; selected < least {
		t.Errorf("%d pods are selected, want at least %d", selected, least)
	}
}

// matches reports whether the match conditions are met for the deletion of a pod, or its update if changed is not nil.
func matches(t *testing.T, matcher matchconditions.Matcher, pod, changed *corev1.Pod, budget *policyv1.PodDisruptionBudget) bool {
	t.Helper()
	kind, operation, object := corev1.SchemeGroupVersion.WithKind("Pod"), admission.Delete, runtime.Object(nil)
	if changed != nil {
		operation, object = admission.Update, changed
	}
	attributes, err := admission.NewVersionedAttributes(admission.NewAttributesRecord(object, pod, kind, pod.Namespace, pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, &user.DefaultInfo{Name: "jane"},
	), kind, admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	expect.NoError(t, err)
	result := matcher.Match(t.Context(), attributes, budget, nil)
	expect.NoError(t, result.Error)
	return result.Matches
}
