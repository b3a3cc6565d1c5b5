// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

const (
	// maxTried is the number of guards, and of pods of each of them, among which a guarded pod is searched.
	maxTried = 20
	// controllerAccount is an account that kube-controller-manager uses if its controllers have accounts of their own.
	controllerAccount = "replicaset-controller"
	// policyText is in the errors of the policy of guards.
	policyText = "ValidatingAdmissionPolicy '" + guard.Policy + "'"
)

// readGuards reads the guards. If there are any, it tries to delete a guarded pod, as a dry run.
func readGuards(ctx context.Context, c client.Client) (g checks.Guards) {
	g.Budgets = all[policyv1.PodDisruptionBudget](ctx, c, &policyv1.PodDisruptionBudgetList{}, nil, client.MatchingLabels(guard.Labels()))
	if len(g.Budgets.Value) == 0 {
		return g
	}
	account := get(ctx, c, metav1.NamespaceSystem, controllerAccount, &corev1.ServiceAccount{})
	g.Accounts = checks.Read[bool]{Value: account.Value != nil, Err: account.Err}
	// An API server that ignores new guards still knows old ones.
	slices.SortFunc(g.Budgets.Value, func(a, b policyv1.PodDisruptionBudget) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	for i := range g.Budgets.Value[:min(maxTried, len(g.Budgets.Value))] {
		if g.Trial = try(ctx, c, &g.Budgets.Value[i]); g.Trial.Err != nil || g.Trial.Value != nil {
			return g
		}
	}
	return g
}

// try tries to delete a pod that the budget guards, as a dry run. It returns nil if there is none.
func try(ctx context.Context, c client.Client, budget *policyv1.PodDisruptionBudget) (tried checks.Read[*checks.Trial]) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return tried // Nothing is guarded.
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(budget.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.MatchingFields{"status.phase": string(corev1.PodRunning)}, client.Limit(maxTried)); err != nil {
		tried.Err = fmt.Errorf("list pods of namespace %s: %w", budget.Namespace, err)
		return tried
	}
	guards := guard.New([]*policyv1.PodDisruptionBudget{budget})
	for i := range pods.Items {
		pod := &pods.Items[i]
		if guards.Deletion(pod) == "" {
			continue
		}
		err := c.Delete(ctx, pod, client.DryRunAll, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
		switch {
		case err == nil:
			tried.Value = &checks.Trial{Namespace: pod.Namespace, Pod: pod.Name, Guard: budget.Name}
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), policyText):
			tried.Value = &checks.Trial{Namespace: pod.Namespace, Pod: pod.Name, Guard: budget.Name, Refused: true}
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			continue // It has changed meanwhile.
		default:
			tried.Err = fmt.Errorf("delete pod %s/%s as a dry run: %w", pod.Namespace, pod.Name, err)
		}
		return tried
	}
	return tried
}
