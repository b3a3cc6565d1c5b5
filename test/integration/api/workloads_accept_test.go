// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// gameServerSet is the StatefulSet that OpenKruiseGame generates for a GameServerSet: with the zero
// values that its Go types write, and with the fields that Seamark does not define.
const gameServerSet = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata:
  name: minecraft
  creationTimestamp: null
  annotations: {game.kruise.io/asts-hash: 5b8d9f}
  ownerReferences:
  - {apiVersion: game.kruise.io/v1alpha1, kind: GameServerSet, name: minecraft, uid: a, controller: true, blockOwnerDeletion: true}
spec:
  replicas: 3
  selector:
    matchLabels: {game.kruise.io/owner-gss: minecraft}
  serviceName: minecraft
  podManagementPolicy: Parallel
  template:
    metadata:
      creationTimestamp: null
      labels: {game.kruise.io/owner-gss: minecraft}
      annotations: {game.kruise.io/network-conf: '[{"name":"PortProtocols","value":"80"}]', game.kruise.io/network-type: Kubernetes-HostPort}
    spec:
      containers:
      - {name: minecraft, image: "minecraft:1.12", resources: {}}
      readinessGates: [{conditionType: InPlaceUpdateReady}]
  volumeClaimTemplates:
  - metadata: {name: world, creationTimestamp: null}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    status: {}
  volumeClaimUpdateStrategy: {}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      partition: 0
      maxUnavailable: 100%
      podUpdatePolicy: InPlaceIfPossible
      inPlaceUpdateStrategy: {}
      unorderedUpdate:
        priorityStrategy:
          orderPriority: [{orderedKey: game.kruise.io/gameserver-update-priority}]
  reserveOrdinals: [4, 2, 2, 7-9]
  lifecycle:
    inPlaceUpdate: {labelsHandler: {game.kruise.io/inplace-update-not-ready-blocker: "true"}}
  scaleStrategy: {}
status:
  replicas: 0
  readyReplicas: 0
  availableReplicas: 0
  currentReplicas: 0
  updatedReplicas: 0
`

func TestValidWorkloadsAreAccepted(t *testing.T) {
	t.Parallel()
	const (
		rolling   = "spec.updateStrategy.rollingUpdate"
		container = "spec.template.spec.containers[0]"
	)
	exists := func(operator string) edit {
		return edit{"spec.selector.matchExpressions", []any{map[string]any{"key": "b", "operator": operator}}}
	}
	for name, tc := range map[string]struct {
		manifest string
		edits    []edit
	}{
		"CloneSet":                  {validCloneSet, nil},
		"small CloneSet":            {smallCloneSet, nil},
		"CloneSet without replicas": {smallCloneSet, []edit{{"spec.replicas", 0}}},
		"CloneSet in place":         {smallCloneSet, []edit{{"spec.updateStrategy", map[string]any{"type": "InPlaceIfPossible", "maxUnavailable": 2}}}},
		"CloneSet in place only": {
			smallCloneSet, []edit{{"spec.updateStrategy", map[string]any{"type": "InPlaceOnly", "partition": "100%", "maxSurge": "0%"}}},
		},
		"CloneSet with surge only": {smallCloneSet, []edit{{"spec.updateStrategy", map[string]any{"maxUnavailable": 0, "maxSurge": "150%"}}}},
		"CloneSet with order": {
			smallCloneSet, []edit{{
				"spec.updateStrategy", map[string]any{
					"priorityStrategy": map[string]any{"orderPriority": []any{map[string]any{"orderedKey": "key1"}, map[string]any{"orderedKey": "key2"}}},
				},
			}},
		},
		"CloneSet with empty priorities": {
			smallCloneSet, []edit{{
				"spec.updateStrategy", map[string]any{"priorityStrategy": map[string]any{"orderPriority": []any{}, "weightPriority": []any{}}},
			}},
		},
		"CloneSet with empty lifecycle": {smallCloneSet, []edit{{"spec.lifecycle", map[string]any{}}}},
		"CloneSet, OnDelete":            {smallCloneSet, []edit{{"spec.updateStrategy", map[string]any{"type": "OnDelete"}}}},
		"CloneSet without deadline":     {smallCloneSet, []edit{{"spec.minReadySeconds", 1<<31 - 1}, {"spec.progressDeadlineSeconds", 1<<31 - 1}}},
		"CloneSet with a dot":           {smallCloneSet, []edit{{"metadata.name", "game.v1"}}},
		"name of 52 characters":         {smallCloneSet, []edit{{"metadata.name", strings.Repeat("a", 52)}}},
		"selector Exists only": {
			smallCloneSet, []edit{{"spec.selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}}},
		},
		"selector NotIn, DoesNotExist": {smallCloneSet, []edit{exists("DoesNotExist")}},
		"template with any field": {
			smallCloneSet, []edit{{container + ".env", []any{map[string]any{"name": "A", "value": "b"}}}, {container + ".unknown", "x"}},
		},
		"template with restartPolicy": {smallCloneSet, []edit{{"spec.template.spec.restartPolicy", "Always"}}},
		"StatefulSet":                 {validStatefulSet, nil},
		"small StatefulSet":           {smallStatefulSet, nil},
		"StatefulSet, ordered": {
			smallStatefulSet, []edit{{"spec.updateStrategy", map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": 2, "minReadySeconds": 10}}}},
		},
		"StatefulSet, ordered, scale 1": {smallStatefulSet, []edit{{"spec.scaleStrategy", map[string]any{"maxUnavailable": 1}}}},
		"StatefulSet, OnDelete":         {smallStatefulSet, []edit{{"spec.updateStrategy", map[string]any{"type": "OnDelete"}}}},
		"StatefulSet without gate in place": {
			smallStatefulSet, []edit{{"spec.updateStrategy", map[string]any{"rollingUpdate": map[string]any{"podUpdatePolicy": "InPlaceOnly"}}}},
		},
		"StatefulSet, empty service name": {smallStatefulSet, []edit{{"spec.serviceName", ""}}},
		"StatefulSet, highest ordinal":    {smallStatefulSet, []edit{{"spec.replicas", 1}, {"spec.ordinals", map[string]any{"start": 1<<31 - 1}}}},
		"StatefulSet, range of one":       {smallStatefulSet, []edit{{"spec.reserveOrdinals", []any{"3-3", "10-9999", 1<<31 - 1}}}},
		"StatefulSet, most replicas":      {smallStatefulSet, []edit{{"spec.replicas", 262144}}},
		"CloneSet, most replicas":         {smallCloneSet, []edit{{"spec.replicas", 262144}}},
		"OpenKruiseGame":                  {gameServerSet, nil},
		"OpenKruiseGame, OnDelete":        {gameServerSet, []edit{{"spec.updateStrategy", map[string]any{"type": "OnDelete"}}}},
		"OpenKruiseGame, no reserved IDs": {gameServerSet, []edit{{"spec.reserveOrdinals", remove{}}, {rolling + ".maxUnavailable", remove{}}}},
		"largest CloneSet":                {validCloneSet, largest("spec.updateStrategy.priorityStrategy")},
		"largest StatefulSet": {validStatefulSet, append(largest(rolling+".unorderedUpdate.priorityStrategy"),
			edit{"spec.reserveOrdinals", repeat("123456789-999999999", 10000)})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect.Success(t, create(t.Context(), parsed(t, tc.manifest, server.Namespace(t), tc.edits...)))
		})
	}
}

// largest fills every field that a rule reads to its limit, so that the cost of the rules is the
// highest: the API server rejects an object whose rules exceed the cost budget.
func largest(priority string) []edit {
	long := func(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("v", 59), i) }
	labels, some := map[string]any{}, map[string]any{}
	for i := range 256 {
		key := fmt.Sprintf("%s.io/%s", strings.Repeat("a", 60), long(i))
		labels[key] = long(i)
		if i < 64 {
			some[key] = long(i)
		}
	}
	few, values := map[string]any{}, make([]any, 128)
	for key := range some {
		if len(few) < 16 {
			few[key] = some[key]
		}
	}
	for i := range values {
		values[i] = long(i + 300)
	}
	expression := map[string]any{"key": "z.io/" + long(0), "operator": "NotIn", "values": values}
	weight := map[string]any{"weight": int64(100), "matchSelector": map[string]any{
		"matchLabels": few, "matchExpressions": repeat(map[string]any{"key": "z", "operator": "In", "values": values[:16]}, 8),
	}}
	finalizers := make([]any, 16)
	for i := range finalizers {
		finalizers[i] = "a.io/" + long(i)
	}
	hook := map[string]any{"labelsHandler": few, "finalizersHandler": finalizers}
	return []edit{
		{"spec.selector", map[string]any{"matchLabels": some, "matchExpressions": repeat(expression, 16)}},
		{"spec.template.metadata.labels", labels},
		{"spec.lifecycle", map[string]any{"preDelete": hook, "inPlaceUpdate": hook}},
		{priority, map[string]any{"weightPriority": repeat(weight, 16)}},
	}
}
