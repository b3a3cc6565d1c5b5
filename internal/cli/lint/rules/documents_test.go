// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"
)

func TestDocuments(t *testing.T) {
	checkEach(t, map[string]linted{
		"empty":         {"# nothing\n", nil},
		"other objects": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: x.io/v1\nkind: Other\nspec: 1\n", nil},
		"invalid YAML":  {worker + "---\n a: [\n", []string{"a.yaml:25:1 invalid-yaml: invalid YAML: yaml: line 25: did not find expected node content"}},
		"key twice":     {"a: 1\nb: 1\na: 2\n", []string{`a.yaml:3:1 invalid-yaml: invalid YAML: line 3: key "a" already set in map`}},
		"no object": {
			"---\n- 1\n---\na: 1\n", []string{
				"a.yaml:2:1 not-an-object: not a Kubernetes object: must have apiVersion and kind",
				"a.yaml:4:1 not-an-object: not a Kubernetes object: must have apiVersion and kind",
			},
		},
		"List": {
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n  spec: {containers: 1}\n- x: 1\n",
			[]string{
				"a.yaml:7:3 template spec: not the spec of a pod: cannot restore slice from int64",
				"a.yaml:8:3 not-an-object: not a Kubernetes object: must have apiVersion and kind",
			},
		},
		"deep List": {
			strings.Repeat("{apiVersion: v1, kind: List, items: [", 10) + strings.Repeat("]}", 10),
			[]string{"a.yaml:1:326 not-an-object items: more than 8 lists inside each other"},
		},
		"misspelled kind": {
			edited(t, worker, "kind: PodProbeMarker", "kind: PodProbeMaker"),
			[]string{`a.yaml:2:1 unknown-kind kind: "PodProbeMaker" is not a kind of apps.kruise.io -> did you mean "PodProbeMarker"?`},
		},
		"kind that is not similar": {
			"apiVersion: seamark.dev/v1\nkind: Game\n",
			[]string{`a.yaml:2:1 unknown-kind kind: "Game" is not a kind of seamark.dev -> use one of ProbePlan, ProbeReport`},
		},
		"kind of OpenKruise": {
			"apiVersion: apps.kruise.io/v1beta1\nkind: UnitedDeployment\n",
			[]string{
				`a.yaml:2:1 kind-not-served kind: Seamark does not serve "UnitedDeployment", which is a kind of OpenKruise: nothing acts on the object unless OpenKruise runs, too`,
			},
		},
		"misspelled kind of OpenKruise": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: SideCarSets\n",
			[]string{`a.yaml:2:1 unknown-kind kind: "SideCarSets" is not a kind of apps.kruise.io -> did you mean "SidecarSet"?`},
		},
		"other version": {
			"apiVersion: seamark.dev/v1beta1\nkind: ProbeReport\n",
			[]string{`a.yaml:1:1 api-version apiVersion: "seamark.dev/v1beta1" is not supported for the kind ProbeReport -> use seamark.dev/v1alpha1`},
		},
		"report": {
			"apiVersion: seamark.dev/v1alpha1\nkind: ProbeReport\nmetadata: {name: node.0}\nnodename: x\n",
			[]string{"a.yaml:1:1 schema nodeName: Required value", "a.yaml:4:1 unknown-field nodename: unknown field -> did you mean \"nodeName\"?"},
		},
		"same object twice": {
			worker + "---\n" + worker,
			[]string{
				`a.yaml:28:3 duplicate-object metadata.name: the same object as PodProbeMarker worker (a.yaml:1) -> remove one of them, or give it another name`,
			},
		},
		"CloneSet": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  replica: 2\n  template:\n    metadata: {labels: {app: other}}\n    spec: {container: [], containers: [{name: x, image: x}]}\n",
			[]string{
				`a.yaml:6:3 unknown-field spec.replica: unknown field -> did you mean "replicas"?`,
				`a.yaml:9:12 template spec.template.spec.container: unknown field -> did you mean "containers"?`,
			},
		},
		"CloneSet with another label": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  template:\n    metadata: {labels: {app: other}}\n    spec: {containers: [{name: x, image: x}]}\n",
			[]string{`a.yaml:7:16 schema spec.template.metadata.labels: Invalid value: must contain the label "app: x" of spec.selector.matchLabels`},
		},
		"StatefulSet": {
			"apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  replicas: -1\n  template:\n    metadata: {labels: {app: x}}\n    spec: {containers: [{name: x, image: x}]}\n",
			[]string{`a.yaml:6:3 schema spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`},
		},
		"StatefulSet of v1alpha1": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: StatefulSet\nmetadata: {name: x}\nspec:\n  selector: {matchLabels: {app: x}}\n  replicas: -1\n  template:\n    metadata: {labels: {app: x}}\n    spec: {containers: [{name: x, image: x}]}\n",
			[]string{`a.yaml:6:3 schema spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`},
		},
	})
}
