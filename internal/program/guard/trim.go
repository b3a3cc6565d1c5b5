// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Trim returns the budget with what guards are made of.
func Trim(budget *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	kept := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: budget.Namespace, Name: budget.Name, UID: budget.UID, ResourceVersion: budget.ResourceVersion, Generation: budget.Generation,
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: budget.Spec.Selector},
	}
	for _, key := range []string{v1alpha1.GuardKey, v1alpha1.GuardUpdateKey} {
		if value, found := budget.Labels[key]; found {
			kept.Labels[key] = value
		}
	}
	if value, found := budget.Annotations[v1alpha1.GuardMaxDurationKey]; found {
		kept.Annotations[v1alpha1.GuardMaxDurationKey] = text.Truncate(value, maxValue)
	}
	return kept
}
