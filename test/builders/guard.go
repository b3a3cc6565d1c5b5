// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// GuardLabel is the label that the budgets of Guards select: with the value "delete" from deletion, with "update" also from
// updates.
const GuardLabel = "guard"

// Guard returns a guard of the pods with the label and one of the values.
func Guard(namespace, name string, updates bool, values ...string) *policyv1.PodDisruptionBudget {
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.GuardKey: "true"}},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: GuardLabel, Operator: metav1.LabelSelectorOpIn, Values: values}},
		}},
	}
	if updates {
		budget.Labels[v1alpha1.GuardUpdateKey] = "true"
	}
	return budget
}

// Guards returns the guards "busy", which protects pods from deletion, and "strict", which protects some of them also from
// updates.
func Guards() guard.Guards {
	return guard.New([]*policyv1.PodDisruptionBudget{Guard("", "busy", false, "delete", "update"), Guard("", "strict", true, "update")})
}
