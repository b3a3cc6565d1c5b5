// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seamark-dev/seamark/internal/migrate"
	"github.com/seamark-dev/seamark/test/golden"
)

// objects decodes the YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		encoded, err := utilyaml.ToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(encoded, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, object.(*unstructured.Unstructured))
	}
	return found
}

const complete = `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: game, name: complete, generation: 3, resourceVersion: "7", managedFields: [{manager: kubectl}]}
spec:
  selector: {matchLabels: {app: server}}
  probes:
  - name: idle
    containerName: server
    probe: {exec: {command: [/idle]}, initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 2}
    podConditionType: game.io/idle
    markerPolicy: [{state: Succeeded, labels: {idle: "true"}}]
status: {observedGeneration: 3, matchedPods: 1, unknown: x}
`

func pod(name, node string, managed ...metav1.ManagedFieldsEntry) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "game", Name: name, Labels: map[string]string{"app": "server"}, ManagedFields: managed},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "server"}}},
	}
}

func owns(manager, subresource, kind, key string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource,
		FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:%s":{"f:%s":{}}}}`, kind, key)),
	}
}

// TestCheck compares the findings of each case with the file in testdata that has its name.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		// markers, cloneSets and statefulSets are YAML documents.
		markers, cloneSets, statefulSets string
		cluster                          migrate.Cluster
	}{
		"nothing": {},
		"nothing changes": {
			markers: complete,
			cluster: migrate.Cluster{
				Pods: []*corev1.Pod{pod("a", "n1", owns("kruise-manager", "status", "labels", "idle"), owns("seamark", "status", "labels", "idle"))},
				Definitions: []migrate.Definition{
					{Name: "podprobemarkers.apps.kruise.io", Kind: "PodProbeMarker", Stored: []string{"v1alpha1"}, Objects: true},
					{Name: "sidecarsets.apps.kruise.io", Kind: "SidecarSet", Stored: []string{"v1alpha1"}},
				},
			},
		},
		"unset values": {
			markers: strings.ReplaceAll(complete, ", initialDelaySeconds: 5, periodSeconds: 5, failureThreshold: 2", ""),
		},
		"fields that the CRD refuses": {
			markers: `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: game, name: m}
spec:
  selector: {matchLabels: {app: server}}
  probes:
  - name: idle
    containerName: server
    probe:
      httpGet: {host: example.com, port: 80}
      terminationGracePeriodSeconds: 3
      initialDelaySeconds: 1
      periodSeconds: 1
      failureThreshold: 1
    podConditionType: game.io/idle
`,
		},
		"timeout that is too long": {
			markers: strings.ReplaceAll(complete, "periodSeconds: 5", "periodSeconds: 5, timeoutSeconds: 301"),
		},
		"marker that Seamark does not follow": {
			markers: strings.ReplaceAll(complete, "game.io/idle", "Ready") + "---\n" +
				strings.ReplaceAll(strings.ReplaceAll(complete, "idle: \"true\"", "app: x"), "name: complete", "name: own-selector"),
		},
		"marker that is being deleted": {
			markers: strings.ReplaceAll(complete, "generation: 3", "deletionTimestamp: 2026-11-22T08:00:00Z"),
		},
		"keys that others set": {
			markers: complete + "---\n" + strings.ReplaceAll(complete, "name: complete", "name: second"),
			cluster: migrate.Cluster{Pods: []*corev1.Pod{
				pod("b", "n1", owns("kubectl-label", "", "labels", "idle"), owns("kruise-manager", "status", "labels", "old")),
				pod("a", "n1", owns("kubectl-label", "", "labels", "idle"), owns("kruise-manager", "status", "annotations", "old")),
			}},
		},
		"pods on a virtual node": {
			markers: complete,
			cluster: migrate.Cluster{Pods: []*corev1.Pod{pod("a", "v"), pod("b", "n1")}, Virtual: sets.New("v")},
		},
		"workloads": {
			markers: complete,
			cloneSets: `apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {namespace: game, name: c, uid: u}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  lifecycle: {preNormal: {finalizersHandler: [a/b]}}
  selector: {matchLabels: {idle: "true"}}
  template: {metadata: {labels: {idle: "true"}}, spec: {containers: [{name: c, image: i}]}}
status: {replicas: 1, other: 2}
`,
			statefulSets: `apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {namespace: game, name: s}
spec:
  serviceName: s
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: i}]}}
`,
		},
		"version that Seamark does not serve": {
			cloneSets: "apiVersion: apps.kruise.io/v1beta1\nkind: CloneSet\nmetadata: {namespace: game, name: c}\n",
		},
		"other kinds and stored versions": {
			cluster: migrate.Cluster{Definitions: []migrate.Definition{
				{Name: "sidecarsets.apps.kruise.io", Kind: "SidecarSet", Stored: []string{"v1alpha1"}, Objects: true},
				{Name: "statefulsets.apps.kruise.io", Kind: "StatefulSet", Stored: []string{"v1alpha1", "v1beta1"}, Objects: true},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []struct {
				text string
				into *[]*unstructured.Unstructured
			}{
				{test.markers, &test.cluster.Markers}, {test.cloneSets, &test.cluster.CloneSets}, {test.statefulSets, &test.cluster.StatefulSets},
			} {
				if kind.text != "" {
					*kind.into = objects(t, kind.text)
				}
			}
			found, err := migrate.Check(t.Context(), test.cluster)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, f := range found {
				fmt.Fprintf(&got, "%s %s\n  field: %q\n  OpenKruise: %s\n  Seamark: %s\n  %s\n", f.Level, f.Object(), f.Field, f.OpenKruise, f.Seamark, f.Action)
			}
			golden.Compare(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt"), got.String())
		})
	}
}

// TestCheckKeepsObjects checks that the objects are not changed: setting defaults would.
func TestCheckKeepsObjects(t *testing.T) {
	found := objects(t, complete)
	before := runtime.DeepCopyJSON(found[0].Object)
	if _, err := migrate.Check(t.Context(), migrate.Cluster{Markers: found}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, found[0].Object); diff != "" {
		t.Errorf("marker (-before +after):\n%s", diff)
	}
}
