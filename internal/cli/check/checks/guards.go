// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Guards is what is known about the guards of the cluster.
type Guards struct {
	// Budgets are the PodDisruptionBudgets with the label of guards.
	Budgets Read[[]policyv1.PodDisruptionBudget]
	// Trial is what the API server answers to the deletion of a guarded pod as a dry run, or nil if no pod is guarded.
	Trial Read[*Trial]
	// Accounts is whether the controllers of kube-controller-manager have accounts of their own.
	Accounts Read[bool]
}

// Trial is the deletion of a guarded pod, which is a dry run.
type Trial struct {
	// Namespace and Pod name the pod, and Guard its guard.
	Namespace, Pod, Guard string
	// Refused is whether the API server refuses the deletion.
	Refused bool
}

// guards checks that the API server refuses the deletion of a guarded pod, and that guards are as few as their cost requires. It
// has no result if the cluster has no guards.
func (f *Facts) guards() []Result {
	const name = "guards"
	if f.Guards.Budgets.Err != nil {
		return unreadable(name, f.Guards.Budgets.Err)
	}
	if len(f.Guards.Budgets.Value) == 0 {
		return nil
	}
	var results []Result
	counts := map[string]int{}
	for i := range f.Guards.Budgets.Value {
		counts[f.Guards.Budgets.Value[i].Namespace]++
	}
	var crowded []string
	for namespace, n := range counts {
		if n > guard.Most {
			crowded = append(crowded, namespace)
		}
	}
	if slices.Sort(crowded); len(crowded) > 0 {
		results = warning(name, "combine guards, or limit them with a ResourceQuota: docs/guards.md#what-guards-cost",
			"more than %d guards, each of which adds to the time of each deletion: in %s", guard.Most, text.List(crowded, maxNames))
	}
	if accounts := f.Guards.Accounts; accounts.Err == nil && !accounts.Value {
		results = append(results, warning(name, "start kube-controller-manager with --use-service-account-credentials",
			"the controllers of Kubernetes have one account, which guards do not bind: a rollout of a Deployment deletes guarded pods")...)
	}
	if named(f.Policies.Value, guardsPolicy) != nil {
		results = append(results, f.trial(name)...)
	}
	return results
}

// trial evaluates the dry run.
func (f *Facts) trial(name string) []Result {
	trial := f.Guards.Trial.Value
	switch {
	case f.Guards.Trial.Err != nil:
		return unreadable(name, f.Guards.Trial.Err)
	case trial == nil:
		return ok(name, "the newest guards have no running pod")
	case trial.Refused:
		return ok(name, "the API server refuses to delete pod %s/%s because of PodDisruptionBudget %s (dry run)", trial.Namespace, trial.Pod, trial.Guard)
	}
	return failed(name, "if the policy seamark-guards exists and is not new, restart the API servers: docs/guards.md#install-again",
		"the API server permits the deletion of pod %s/%s, although PodDisruptionBudget %s guards it (dry run)", trial.Namespace, trial.Pod, trial.Guard)
}
