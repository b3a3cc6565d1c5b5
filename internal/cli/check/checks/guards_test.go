// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"testing"

	"github.com/seamark-dev/seamark/internal/cli/check/checks"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestGuardProblems(t *testing.T) {
	guarded := func(n int, trial *checks.Trial) func(*testing.T, *checks.Facts) {
		return func(_ *testing.T, f *checks.Facts) {
			f.Guards.Accounts.Value, f.Guards.Trial.Value = true, trial
			for range n {
				f.Guards.Budgets.Value = append(f.Guards.Budgets.Value, *builders.Guard("game", "busy", false, "yes"))
			}
		}
	}
	trial := checks.Trial{Namespace: "game", Pod: "p", Guard: "busy"}
	refused := trial
	refused.Refused = true
	checkProblems(t, map[string]problem{
		"no guarded pod":        {guarded(1, nil), ""},
		"deletion is refused":   {guarded(16, &refused), ""},
		"guards without rights": {func(_ *testing.T, f *checks.Facts) { f.Guards.Budgets.Err = errors.New("no") }, "unknown guards: no\n"},
		"deletion is permitted": {
			guarded(1, &trial),
			"failed guards: the API server permits the deletion of pod game/p, although PodDisruptionBudget busy guards it (dry run)\n" +
				"  if the policy seamark-guards exists and is not new, restart the API servers: docs/guards.md#install-again\n",
		},
		"deletion is not tried": {
			func(t *testing.T, f *checks.Facts) {
				guarded(1, nil)(t, f)
				f.Guards.Trial.Err = errors.New("no")
			}, "unknown guards: no\n",
		},
		"17 guards": {
			guarded(17, &refused), "warning guards: more than 16 guards, each of which adds to the time of each deletion: in game\n" +
				"  combine guards, or limit them with a ResourceQuota: docs/guards.md#what-guards-cost\n",
		},
		"one account of controllers": {
			func(t *testing.T, f *checks.Facts) {
				guarded(1, &refused)(t, f)
				f.Guards.Accounts.Value = false
			},
			"warning guards: the controllers of Kubernetes have one account, which guards do not bind: a rollout of a Deployment deletes guarded pods\n" +
				"  start kube-controller-manager with --use-service-account-credentials\n",
		},
	})
}
