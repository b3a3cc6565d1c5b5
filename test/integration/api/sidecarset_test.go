// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// validSidecarSet has every part of a SidecarSet.
const validSidecarSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: logs
spec:
  selector:
    matchLabels: {app: game}
    matchExpressions:
    - {key: tier, operator: In, values: [front, back]}
  namespace: games
  namespaceSelector: {matchLabels: {logs: "true"}}
  customVersion: v1
  initContainers:
  - name: agent
    image: agent:1
    restartPolicy: Always
    startupProbe: {exec: {command: [ready]}}
    podInjectPolicy: BeforeAppContainer
  containers:
  - name: shipper
    image: shipper:1
    volumeMounts: [{name: spool, mountPath: /spool}]
    podInjectPolicy: AfterAppContainer
    upgradeStrategy: {upgradeType: ColdUpgrade}
    shareVolumePolicy: {type: enabled}
    shareVolumeDevicePolicy: {type: disabled}
    transferEnv:
    - {sourceContainerName: server, envName: PORT}
    - {sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}, envNames: [A, B]}
  volumes: [{name: spool, emptyDir: {}}]
  imagePullSecrets: [{name: registry}]
  injectionStrategy:
    paused: true
    revision: {customVersion: v0, policy: Partial}
  updateStrategy:
    type: NotUpdate
    paused: true
    selector: {matchLabels: {canary: "true"}}
    maxUnavailable: 10%
    priorityStrategy: {orderPriority: [{orderedKey: order}]}
    scatterStrategy: [{key: zone, value: a}, {key: rack, value: "*"}]
  revisionHistoryLimit: 5
  patchPodMetadata:
  - {annotations: {example.com/log: "{}"}, patchPolicy: MergePatchJson}
`

func sidecarSetRejections() map[string]rejection {
	const (
		selector  = "spec.selector"
		container = "spec.containers[0]"
		transfer  = container + ".transferEnv[0]"
		update    = "spec.updateStrategy"
		holdOne   = "must contain at least one label in matchLabels or one requirement in matchExpressions"
		system    = "must not be kube-system"
	)
	sidecar := func(name string) map[string]any { return map[string]any{"name": name, "image": "a:1"} }
	return map[string]rejection{
		"name too long":           one("metadata.name", strings.Repeat("a", 64), "63"),
		"no selector":             one(selector, remove{}, "Required value"),
		"selector empty":          one(selector, map[string]any{}, holdOne),
		"selector label key":      one(selector+".matchLabels", map[string]any{"a b": "c"}, "keys must be qualified names"),
		"selector label value":    one(selector+".matchLabels", map[string]any{"app": "-"}, "should match").at(selector + ".matchLabels.app"),
		"selector operator":       one(selector+".matchExpressions[0].operator", "Is", `"In", "NotIn", "Exists", "DoesNotExist"`),
		"selector without values": one(selector+".matchExpressions[0].values", []any{}, "must contain at least one value for the operators In and NotIn"),
		"kube-system":             one("spec.namespace", "kube-system", system),
		"kube-system in v1beta1": one(
			"spec.specificNamespace", map[string]any{"namespace": "kube-system"}, system,
		).with(edit{"spec.namespace", remove{}}).at("spec.specificNamespace.namespace"),
		"namespace": one("spec.namespace", "a/b", "should match"),
		"namespace twice": one(
			"spec.specificNamespace", map[string]any{"namespace": "a"}, "must not be set together with namespace",
		).at("spec.specificNamespace.namespace"),
		"namespace selector": one("spec.namespaceSelector.matchLabels", map[string]any{"a b": "c"}, "keys must be qualified names"),
		"namespace selector twice": one(
			"spec.specificNamespace", map[string]any{"namespaceSelector": map[string]any{}}, "must not be set together with namespaceSelector",
		).at("spec.specificNamespace.namespaceSelector"),
		"no containers": one(
			"spec.containers", []any{}, "must contain at least one container",
		).with(edit{"spec.initContainers", remove{}}).at("spec"),
		"too many containers":     one("spec.containers", repeat(sidecar("a"), 33), "32"),
		"name twice":              one("spec.containers", []any{sidecar("a"), sidecar("a")}, "must have different names").at("spec.containers"),
		"name in both lists":      one(container+".name", "agent", "must have other names than initContainers").at("spec.containers"),
		"no name":                 one(container+".name", remove{}, "Required value"),
		"container name":          one(container+".name", "Shipper", "should match"),
		"no image":                one(container+".image", remove{}, "Required value"),
		"image empty":             one(container+".image", "", "at least 1"),
		"podInjectPolicy":         one(container+".podInjectPolicy", "Before", `"BeforeAppContainer", "AfterAppContainer"`),
		"HotUpgrade":              one(container+".upgradeStrategy.upgradeType", "HotUpgrade", "HotUpgrade is not supported", "native sidecar"),
		"hotUpgradeEmptyImage":    one(container+".upgradeStrategy.hotUpgradeEmptyImage", "a:1", "HotUpgrade is not supported, use ColdUpgrade"),
		"resourcesPolicy":         one(container+".resourcesPolicy", map[string]any{"targetContainersMode": "sum"}, "it is not supported, set resources"),
		"shareVolumePolicy":       one(container+".shareVolumePolicy.type", "Enabled", `"enabled", "disabled"`),
		"shareVolumeDevicePolicy": one(container+".shareVolumeDevicePolicy.type", "", `"enabled", "disabled"`),
		"two sources": one(
			transfer+".sourceContainerNameFrom", map[string]any{
				"fieldRef": map[string]any{"fieldPath": "metadata.labels['a']"},
			}, "must have either sourceContainerName or sourceContainerNameFrom",
		).at(transfer),
		"no source":              one(transfer+".sourceContainerName", "", "must have either sourceContainerName or sourceContainerNameFrom").at(transfer),
		"no variable":            one(transfer+".envName", "", "must have envName or envNames").at(transfer),
		"field of the source":    one(container+".transferEnv[1].sourceContainerNameFrom.fieldRef.fieldPath", "metadata.name", "should match"),
		"partition and selector": one(update+".partition", "10%", "must be 0 if selector is set"),
		"partition":              one(update+".partition", "101%", "should match").with(edit{update + ".selector", remove{}}),
		"partition negative":     one(update+".partition", -1, "greater than or equal to 0").with(edit{update + ".selector", remove{}}),
		"maxUnavailable 0":       one(update+".maxUnavailable", 0, "greater than or equal to 1"),
		"maxUnavailable 0%":      one(update+".maxUnavailable", "0%", "should match"),
		"update type":            one(update+".type", "OnDelete", `"RollingUpdate", "NotUpdate"`),
		"update selector empty":  one(update+".selector", map[string]any{}, holdOne),
		"order key":              one(update+".priorityStrategy.orderPriority[0].orderedKey", "a b", "must be a label key"),
		"weight": one(
			update+".priorityStrategy", map[string]any{
				"weightPriority": []any{map[string]any{"weight": 101, "matchSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}},
			}, "100",
		).
			at(update + ".priorityStrategy.weightPriority[0].weight"),
		"scatter key":   one(update+".scatterStrategy[0].key", "a b", "must be a label key"),
		"scatter value": one(update+".scatterStrategy[0].value", "a*", "should match"),
		"no revision": one(
			"spec.injectionStrategy.revision.customVersion", "", "must have revisionName or customVersion",
		).at("spec.injectionStrategy.revision"),
		"revision policy":  one("spec.injectionStrategy.revision.policy", "PartitionBased", `"Always", "Partial"`),
		"custom version":   one("spec.customVersion", "a b", "should match"),
		"history limit":    one("spec.revisionHistoryLimit", 0, "greater than or equal to 1"),
		"annotation key":   one("spec.patchPodMetadata[0].annotations", map[string]any{"a b": "c"}, "keys must be qualified names"),
		"annotation value": one("spec.patchPodMetadata[0].annotations.a", strings.Repeat("a", 16385), "16384"),
		"patch policy":     one("spec.patchPodMetadata[0].patchPolicy", "Merge", `"Retain", "Overwrite", "MergePatchJson"`),
	}
}

func TestInvalidSidecarSetsAreRejected(t *testing.T) {
	t.Parallel()
	rejectsEach(t, validSidecarSet, "", sidecarSetRejections())
}

func TestValidSidecarSetsAreAccepted(t *testing.T) {
	t.Parallel()
	const update = "spec.updateStrategy"
	for name, edits := range map[string][]edit{
		"containers only":      {{"spec.initContainers", remove{}}},
		"init containers only": {{"spec.containers", remove{}}},
		"v1beta1 spelling": {
			{"spec.namespace", remove{}}, {"spec.namespaceSelector", remove{}},
			{
				"spec.specificNamespace", map[string]any{
					"namespace": "games", "namespaceSelector": map[string]any{"matchLabels": map[string]any{"logs": "true"}},
				},
			},
		},
		"all namespaces":   {{"spec.namespace", remove{}}, {"spec.namespaceSelector", map[string]any{}}},
		"partition":        {{update + ".partition", "99%"}, {update + ".selector", remove{}}},
		"partition 0":      {{update + ".partition", 0}},
		"maxUnavailable":   {{update + ".maxUnavailable", 3}},
		"revision by name": {{"spec.injectionStrategy.revision", map[string]any{"revisionName": "logs-6d5c"}}},
		"least": {{
			"spec", map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "containers": []any{map[string]any{"name": "a", "image": "b"}},
			},
		}},
		"empty upgradeType": {{"spec.containers[0].upgradeStrategy", map[string]any{"upgradeType": "", "hotUpgradeEmptyImage": ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edits = append(edits, edit{"metadata.name", strings.ReplaceAll(strings.ToLower(name), " ", "-")})
			object := parsed(t, validSidecarSet, "", edits...)
			expect.NoError(t, create(t.Context(), object))
			if policy, found, err := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type"); err != nil || !found || policy == "" {
				t.Errorf("the set has no default of updateStrategy.type: %v", object.Object)
			}
		})
	}
}

// TestColumnsOfSidecarSets checks the columns of `kubectl get sidecarsets`, by which a take-over is checked.
func TestColumnsOfSidecarSets(t *testing.T) {
	t.Parallel()
	stored := parsed(t, validSidecarSet, "", edit{"metadata.name", "columns"})
	expect.NoError(t, server.Client.Create(t.Context(), stored))
	type row = map[string]any
	condition := func(kind, status string) row {
		return row{"type": kind, "status": status, "reason": "Tested", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	accepted, injecting := v1alpha1.SidecarSetAccepted, v1alpha1.SidecarSetInjecting
	counts := row{"matchedPods": int64(3), "updatedPods": int64(2), "readyPods": int64(1), "uninjectedPods": int64(4)}
	for _, test := range []struct{ status, want row }{
		// A new set has no status.
		{nil, row{"MATCHED": nil, "UPDATED": nil, "READY": nil, "UNINJECTED": nil, "ACCEPTED": nil, "INJECTING": nil}},
		// The controller does not write zeros.
		{
			row{"conditions": []any{condition(accepted, "False"), condition(injecting, "False")}},
			row{"MATCHED": int64(0), "UPDATED": int64(0), "READY": int64(0), "UNINJECTED": int64(0), "ACCEPTED": "False", "INJECTING": "False"},
		},
		{counts, row{"MATCHED": int64(3), "UPDATED": int64(2), "READY": int64(1), "UNINJECTED": int64(4), "ACCEPTED": nil, "INJECTING": nil}},
	} {
		if test.status != nil {
			stored.Object["status"] = test.status
			expect.NoError(t, server.Client.Status().Update(t.Context(), stored))
		}
		test.want["Name"] = "columns"
		expectColumns(t, v1alpha1.GroupVersion(), "sidecarsets", stored, test.want)
	}
}

// TestDefaultsOfSidecarSets compares the fields that the API server sets with those that the webhook of OpenKruise stores, except
// those of containers and volumes of pods.
func TestDefaultsOfSidecarSets(t *testing.T) {
	t.Parallel()
	const manifest = `
apiVersion: apps.kruise.io/VERSION
kind: SidecarSet
metadata: {name: defaults-VERSION}
spec:
  selector: {matchLabels: {app: game}}
  containers:
  - {name: a, image: "a:1", transferEnv: [{envName: A, sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['main']"}}}]}
  - {name: b, image: "b:1", upgradeStrategy: {}, shareVolumePolicy: {}, podInjectPolicy: AfterAppContainer}
  initContainers: [{name: c, image: "c:1", shareVolumePolicy: {type: enabled}}]
  injectionStrategy: {revision: {customVersion: v1}}
  patchPodMetadata: [{annotations: {a: b}}]
`
	container := func(name, policy, share string) map[string]any {
		return map[string]any{
			"name": name, "image": name + ":1", "podInjectPolicy": policy,
			"upgradeStrategy": map[string]any{"upgradeType": "ColdUpgrade"}, "shareVolumePolicy": map[string]any{"type": share},
		}
	}
	first := container("a", "BeforeAppContainer", "disabled")
	first["transferEnv"] = []any{map[string]any{"envName": "A", "sourceContainerNameFrom": map[string]any{
		"fieldRef": map[string]any{"apiVersion": "v1", "fieldPath": "metadata.labels['main']"},
	}}}
	want := map[string]any{
		"selector":             map[string]any{"matchLabels": map[string]any{"app": "game"}},
		"containers":           []any{first, container("b", "AfterAppContainer", "disabled")},
		"initContainers":       []any{container("c", "AfterAppContainer", "enabled")},
		"injectionStrategy":    map[string]any{"revision": map[string]any{"customVersion": "v1", "policy": "Always"}},
		"updateStrategy":       map[string]any{"type": "RollingUpdate", "partition": int64(0), "maxUnavailable": int64(1)},
		"patchPodMetadata":     []any{map[string]any{"annotations": map[string]any{"a": "b"}, "patchPolicy": "Retain"}},
		"revisionHistoryLimit": int64(10),
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		object := parsed(t, strings.ReplaceAll(manifest, "VERSION", version), "")
		expect.NoError(t, create(t.Context(), object))
		expect.Equal[any](t, fmt.Sprintf("%s: spec", version), want, object.Object["spec"])
	}
	without := parsed(
		t, strings.NewReplacer(
			"VERSION", "v1alpha1", "  injectionStrategy: {revision: {customVersion: v1}}\n", "",
		).Replace(manifest), "", edit{"metadata.name", "defaults-injection"},
	)
	expect.NoError(t, create(t.Context(), without))
	if strategy, found, _ := unstructured.NestedMap(without.Object, "spec", "injectionStrategy"); !found || len(strategy) != 0 {
		t.Errorf("injectionStrategy %v, want {}", strategy)
	}
}
