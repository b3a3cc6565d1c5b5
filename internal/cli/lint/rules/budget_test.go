// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/manifest/document"
)

// TestBudgets checks budgets next to a Deployment of games and a marker that sets the label idle.
func TestBudgets(t *testing.T) {
	const others = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: games}
spec:
  selector: {matchLabels: {app: game}}
  template: {metadata: {labels: {app: game, tier: a}}, spec: {containers: [{name: main, image: game}]}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: games}
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - {name: idle, containerName: main, probe: {tcpSocket: {port: 1}}, markerPolicy: [{state: Succeeded, labels: {idle: "true"}, labelsFrom: [{key: players}]}]}
`
	budget := func(name, metadata, spec string) string {
		return "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " + name + metadata + "}\nspec: {" + spec + "}\n"
	}
	const (
		guard   = `, labels: {seamark.dev/guard: "true"}`
		exempt  = `, {key: seamark.dev/guard-exempt, operator: DoesNotExist}`
		busy    = `selector: {matchLabels: {app: game}, matchExpressions: [{key: idle, operator: NotIn, values: ["true"]}`
		players = `selector: {matchLabels: {app: game}, matchExpressions: [{key: players, operator: NotIn, values: ["0"]}`
		maximum = `, annotations: {seamark.dev/guard-max-duration: 2h}`
	)
	many := ""
	for i := range 17 {
		many += budget(fmt.Sprintf("g-%02d", i), guard, fmt.Sprintf("maxUnavailable: 0, selector: {matchLabels: {app: game, tier: t%d}, "+
			"matchExpressions: [{key: idle, operator: Exists}%s]}", i, exempt))
	}
	for name, test := range map[string]struct{ manifests, want string }{
		"a guard":  {budget("a", guard, "maxUnavailable: 0, "+busy+exempt+"]}"), ""},
		"no guard": {budget("a", "", "maxUnavailable: 1, "+busy+"]}"), ""},
		"another value of the label": {
			budget("a", `, labels: {seamark.dev/guard: "yes"}`, "maxUnavailable: 1, "+busy+"]}"),
			"guard-value metadata.labels[seamark.dev/guard]",
		},
		"a guard without the exit": {budget("a", guard, "maxUnavailable: 0, "+busy+"]}"), "guard-exempt spec.selector"},
		"a guard that permits one": {budget("a", guard, "maxUnavailable: 1, "+busy+exempt+"]}"), "guard-evictions spec.maxUnavailable"},
		"a guard of ready pods": {
			budget("a", guard, "maxUnavailable: 0, unhealthyPodEvictionPolicy: AlwaysAllow, "+busy+exempt+"]}"),
			"guard-evictions spec.unhealthyPodEvictionPolicy",
		},
		"a guard by minAvailable":   {budget("a", guard, "minAvailable: 1000000, "+busy+exempt+"]}"), ""},
		"a guard that demands five": {budget("a", guard, "minAvailable: 5, "+busy+exempt+"]}"), "guard-evictions spec.minAvailable"},
		"a percentage over a mark":  {budget("a", "", "minAvailable: 50%, "+busy+"]}"), "budget-percentage spec.minAvailable"},
		"a percentage over all":     {budget("a", "", "minAvailable: 50%, selector: {matchLabels: {app: game}}"), ""},
		"all of those with a mark":  {budget("a", "", "maxUnavailable: 0%, "+busy+"]}"), ""},
		"a guard over no label": {
			budget("a", guard, "maxUnavailable: 0, selector: {matchLabels: {app: game, busy: x}, matchExpressions: ["+exempt[2:]+"]}"),
			"guard-label spec.selector",
		},
		"two budgets": {
			budget("a", "", "maxUnavailable: 1, "+busy+"]}") + budget("b", "", "maxUnavailable: 1, selector: {matchLabels: {app: game}}"),
			"budget-overlap spec.selector",
		},
		"two budgets that differ": {
			budget("a", "", "maxUnavailable: 1, "+busy+"]}") + budget("b", "", "maxUnavailable: 1, selector: {matchLabels: {idle: 'true'}}"),
			"",
		},
		"two budgets of other pods": {
			budget("a", "", "maxUnavailable: 1, "+busy+"]}") + budget("b", "", "maxUnavailable: 1, selector: {matchLabels: {app: web}}"),
			"",
		},
		"two budgets of no template": {
			budget("a", "", "maxUnavailable: 1, selector: {matchLabels: {x: a}}") + budget("b", "", "maxUnavailable: 1, selector: {matchLabels: {y: b}}"),
			"budget-overlap spec.selector",
		},
		"two budgets in namespaces": {
			budget("a", ", namespace: x", "maxUnavailable: 1, "+busy+"]}") + budget("b", ", namespace: y", "maxUnavailable: 1, "+busy+"]}"),
			"",
		},
		"a budget without a selector": {budget("a", guard, "maxUnavailable: 1"), ""},
		"an invalid maximum": {
			budget("a", guard+", annotations: {seamark.dev/guard-max-duration: 2d}", "maxUnavailable: 0, "+busy+exempt+"]}"),
			"guard-value metadata.annotations[seamark.dev/guard-max-duration]",
		},
		"a maximum over a state":   {budget("a", guard+maximum, "maxUnavailable: 0, "+busy+exempt+"]}"), ""},
		"a maximum over a message": {budget("a", guard+maximum, "maxUnavailable: 0, "+players+exempt+"]}"), "guard-printed-label spec.selector"},
		"a guard over a message":   {budget("a", guard, "maxUnavailable: 0, "+players+exempt+"]}"), ""},
		"17 guards":                {many, "too-many-guards metadata.labels[seamark.dev/guard]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range new(Linter).Check(t.Context(), []document.File{{Name: "a.yaml", Content: []byte(others + test.manifests)}}).Findings {
				if f.Severity.AtLeast(Warning) {
					got = append(got, f.Rule+" "+f.Field)
				}
			}
			if strings.Join(got, "; ") != test.want {
				t.Errorf("findings %q, want %q", got, test.want)
			}
		})
	}
}
