// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// validDaemonSet has every part of a DaemonSet.
	validDaemonSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata:
  name: agent
spec:
  selector:
    matchLabels: {app: agent}
    matchExpressions:
    - {key: tier, operator: In, values: [front, back]}
  template:
    metadata:
      labels: {app: agent, tier: front}
    spec:
      containers: [{name: server, image: agent:1}]
  minReadySeconds: 5
  burstReplicas: 10%
  revisionHistoryLimit: 5
  progressDeadlineSeconds: 600
  scaleStrategy: {partitionedScaling: true}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      rollingUpdateType: Standard
      maxUnavailable: 0
      maxSurge: 10%
      partition: 50%
      paused: true
      selector:
        matchLabels: {pool: canary}
        matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a, b]}]
  lifecycle:
    preDelete: {labelsHandler: {agent.io/busy: "true"}, finalizersHandler: [agent.io/busy], markPodNotReady: true}
`
	smallDaemonSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: server, image: agent:1}]}
`
)

// daemonSetRejections are changes that make the valid DaemonSet invalid, besides those of all workloads.
func daemonSetRejections() map[string]rejection {
	const (
		rolling  = "spec.updateStrategy.rollingUpdate"
		selector = rolling + ".selector"
		none     = "must not be 0 if maxSurge is 0: no pod could be updated. Set one of them to 1 or more"
		both     = "must be 0 if maxUnavailable is not 0: set one of them to 0. Without maxSurge, Surging has 1"
		inPlace  = "must be 0 if rollingUpdateType is InPlaceIfPossible: no pod is created for an update in place. Use maxUnavailable, or the type Standard"
	)
	budget := func(values map[string]any, field, message string) rejection {
		return one(rolling, values, message).at(rolling + "." + field)
	}
	noSurge := edit{rolling + ".maxSurge", remove{}}
	hook := map[string]any{"labelsHandler": map[string]any{"a": "b"}}
	return map[string]rejection{
		"hook inPlaceUpdate":         one("spec.lifecycle.inPlaceUpdate", hook, "is not supported: use preDelete, or a CloneSet, whose pods have this hook"),
		"hook preNormal":             one("spec.lifecycle.preNormal", hook, "is not supported: use a readiness gate or a readiness probe"),
		"restart policy OnFailure":   one("spec.template.spec.restartPolicy", "OnFailure", `"Always"`),
		"minReadySeconds negative":   one("spec.minReadySeconds", -1, "greater than or equal to 0"),
		"minReadySeconds too large":  one("spec.minReadySeconds", 1<<31, "2147483647").with(edit{"spec.progressDeadlineSeconds", remove{}}),
		"deadline 0":                 one("spec.progressDeadlineSeconds", 0, "greater than or equal to 1"),
		"deadline too short":         one("spec.progressDeadlineSeconds", 5, "must be greater than minReadySeconds"),
		"burst 0":                    one("spec.burstReplicas", 0, "greater than or equal to 1"),
		"burst 0%":                   one("spec.burstReplicas", "0%", "^([1-9]|[1-9][0-9]|100)%$"),
		"burst text":                 one("spec.burstReplicas", "250", "%$"),
		"update type":                one("spec.updateStrategy.type", "Rolling", `"RollingUpdate", "OnDelete"`),
		"rolling update type":        one(rolling+".rollingUpdateType", "InPlaceOnly", `"Standard", "InPlaceIfPossible", "Surging"`),
		"maxUnavailable negative":    one(rolling+".maxUnavailable", -1, "greater than or equal to 0").with(noSurge),
		"maxUnavailable 101%":        one(rolling+".maxUnavailable", "101%", "%$").with(noSurge),
		"maxSurge negative":          one(rolling+".maxSurge", -1, "greater than or equal to 0"),
		"maxSurge text":              one(rolling+".maxSurge", "1", "%$"),
		"partition negative":         one(rolling+".partition", -1, "greater than or equal to 0"),
		"partition text":             one(rolling+".partition", "half", "%$"),
		"partition 101%":             one(rolling+".partition", "101%", "%$"),
		"none unavailable":           budget(map[string]any{"maxUnavailable": 0}, "maxUnavailable", none),
		"none unavailable, no surge": budget(map[string]any{"maxUnavailable": "0%", "maxSurge": 0}, "maxUnavailable", none),
		"Surging without surge":      budget(map[string]any{"rollingUpdateType": "Surging", "maxUnavailable": 0, "maxSurge": "0%"}, "maxUnavailable", none),
		"in place, none unavailable": budget(map[string]any{"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 0}, "maxUnavailable", none),
		"unavailable and surge":      budget(map[string]any{"maxUnavailable": 1, "maxSurge": "10%"}, "maxSurge", both),
		"Surging and unavailable":    budget(map[string]any{"rollingUpdateType": "Surging", "maxUnavailable": "10%"}, "maxSurge", both),
		"in place with surge":        budget(map[string]any{"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 0, "maxSurge": 1}, "maxSurge", inPlace),
		"in place, surge only":       budget(map[string]any{"rollingUpdateType": "InPlaceIfPossible", "maxSurge": 1}, "maxSurge", inPlace),
		"node label key":             one(selector+".matchLabels", map[string]any{"a b": "c"}, "keys must be qualified names"),
		"node label value":           one(selector+".matchLabels", map[string]any{"a": "-"}, "[A-Za-z0-9]").at(selector + ".matchLabels.a"),
		"too many node labels":       one(selector+".matchLabels", keys(65), "64"),
		"node requirement operator":  one(selector+".matchExpressions[0].operator", "Gt", `"In", "NotIn", "Exists", "DoesNotExist"`),
		"node requirement key":       one(selector+".matchExpressions[0].key", "a b", "must be a qualified name"),
		"node requirement value":     one(selector+".matchExpressions[0].values[0]", "a/b", "[A-Za-z0-9]"),
		"node requirement, no value": one(selector+".matchExpressions[0].values", []any{}, "must contain at least one value for the operators In and NotIn"),
	}
}

func TestInvalidDaemonSetsAreRejected(t *testing.T) {
	t.Parallel()
	cases := sharedRejections()
	addAll(cases, daemonSetRejections())
	maps.DeleteFunc(cases, func(_ string, test rejection) bool { // A DaemonSet does not have these fields.
		return strings.HasPrefix(test.field, "spec.replicas") || strings.HasPrefix(test.field, "spec.volumeClaimTemplates")
	})
	rejectsEach(t, validDaemonSet, server.Namespace(t), cases)
}

func TestValidDaemonSetsAreAccepted(t *testing.T) {
	t.Parallel()
	rolling := func(values map[string]any) []edit {
		return []edit{{"spec.updateStrategy", map[string]any{"rollingUpdate": values}}}
	}
	for name, edits := range map[string][]edit{
		"no budget":             rolling(map[string]any{}),
		"unavailable":           rolling(map[string]any{"maxUnavailable": "20%"}),
		"surge":                 rolling(map[string]any{"maxSurge": 2}),
		"surge 0":               rolling(map[string]any{"maxSurge": 0}),
		"surge in percent":      rolling(map[string]any{"maxSurge": "100%", "maxUnavailable": "0%"}),
		"Surging":               rolling(map[string]any{"rollingUpdateType": "Surging"}),
		"Surging, 0":            rolling(map[string]any{"rollingUpdateType": "Surging", "maxUnavailable": 0}),
		"Surging, surge 0":      rolling(map[string]any{"rollingUpdateType": "Surging", "maxSurge": 0}),
		"in place":              rolling(map[string]any{"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "30%", "maxSurge": 0}),
		"in place, no budget":   rolling(map[string]any{"rollingUpdateType": "InPlaceIfPossible"}),
		"partition":             rolling(map[string]any{"partition": 3}),
		"partition in percent":  rolling(map[string]any{"partition": "100%"}),
		"all nodes":             rolling(map[string]any{"selector": map[string]any{}}),
		"OnDelete":              {{"spec.updateStrategy", map[string]any{"type": "OnDelete"}}},
		"burst":                 {{"spec.burstReplicas", 1}},
		"name of 52 characters": {{"metadata.name", strings.Repeat("a", 52)}},
		"progressive":           {{"metadata.annotations", map[string]any{v1alpha1.ProgressiveCreatePodKey: "true"}}},
		// OpenKruise's webhook stores these defaults.
		"OpenKruise": {
			{"spec.burstReplicas", 250}, {"spec.revisionHistoryLimit", 10}, {"spec.minReadySeconds", 0},
			{"spec.updateStrategy", map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
				"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0, "partition": 0, "paused": false,
			}}},
			{"spec.template.metadata.creationTimestamp", nil}, {"spec.template.spec.restartPolicy", "Always"},
			{"spec.template.spec.containers[0].imagePullPolicy", "Always"},
		},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				manifest := strings.Replace(smallDaemonSet, "v1alpha1", version, 1)
				expect.Success(t, create(t.Context(), parsed(t, manifest, server.Namespace(t), edits...)))
			})
		}
	}
	t.Run("largest", func(t *testing.T) {
		t.Parallel()
		edits := largest("spec.updateStrategy.rollingUpdate")
		names := repeat(map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": repeat(strings.Repeat("n", 63), 1000)}, 8)
		edits[3] = edit{"spec.updateStrategy.rollingUpdate.selector.matchExpressions", names}
		edits = append(edits, edit{"spec.lifecycle.inPlaceUpdate", remove{}})
		expect.Success(t, create(t.Context(), parsed(t, validDaemonSet, server.Namespace(t), edits...)))
	})
}

// TestDaemonSetsInBothVersions checks the defaults, and that an object has the same fields in both versions.
func TestDaemonSetsInBothVersions(t *testing.T) {
	t.Parallel()
	object := parsed(t, smallDaemonSet, server.Namespace(t))
	expect.NoError(t, server.Client.Create(t.Context(), object))
	want := map[string]any{
		"minReadySeconds": int64(0), "burstReplicas": int64(250), "revisionHistoryLimit": int64(10),
		"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"rollingUpdateType": "Standard"}},
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		got := &unstructured.Unstructured{}
		got.SetAPIVersion("apps.kruise.io/" + version)
		got.SetKind("DaemonSet")
		got.SetNamespace(object.GetNamespace())
		expect.NoError(t, server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), got))
		spec, _, _ := unstructured.NestedMap(got.Object, "spec")
		delete(spec, "selector")
		delete(spec, "template")
		expect.Equal(t, fmt.Sprintf("%s: spec", version), want, spec)
	}
	stored := parsed(t, smallDaemonSet, object.GetNamespace())
	expect.NoError(t, server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), stored))
	expect.NoError(t, (edit{"spec.selector.matchLabels.a", "b"}).apply(stored.Object))
	expect.NoError(t, (edit{"spec.template.metadata.labels.a", "b"}).apply(stored.Object))
	expectRejection(t, server.Client.Update(t.Context(), stored), one("spec.selector", nil, "field is immutable: delete the set and create a new one"))
}

// TestDaemonSetColumns checks the columns of `kubectl get ads -o wide`: those of OpenKruise.
func TestDaemonSetColumns(t *testing.T) {
	t.Parallel()
	object := parsed(t, smallDaemonSet, server.Namespace(t))
	expect.NoError(t, server.Client.Create(t.Context(), object))
	object.Object["status"] = map[string]any{
		"desiredNumberScheduled": int64(5), "currentNumberScheduled": int64(4), "numberReady": int64(3), "updatedNumberScheduled": int64(2),
		"numberAvailable": int64(1), "numberMisscheduled": int64(0), "daemonSetHash": "a",
		"conditions": []any{map[string]any{"type": "Progressing", "status": "True", "reason": "Updating"}},
	}
	expect.NoError(t, server.Client.Status().Update(t.Context(), object))
	want := map[string]any{
		"Name": "agent", "DESIRED": int64(5), "CURRENT": int64(4), "READY": int64(3), "UP-TO-DATE": int64(2), "AVAILABLE": int64(1),
		"CONTAINERS": "server", "IMAGES": "agent:1",
	}
	expectColumns(t, v1alpha1.GroupVersion(), "daemonsets", object, want)
}
