// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/internal/cli/migrate/migration"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/template"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
)

// setsWith returns a set per spec, each with the same template.
func setsWith(t *testing.T, kind string, specs map[string]string) []*unstructured.Unstructured {
	t.Helper()
	version := map[string]string{"CloneSet": "v1alpha1", "StatefulSet": "v1beta1"}[kind]
	var documents []string
	for name, spec := range specs {
		documents = append(documents, fmt.Sprintf(`apiVersion: apps.kruise.io/%s
kind: %s
metadata: {namespace: game, name: %s}
spec:
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}
  %s
status: {updateRevision: %s-1}
`, version, kind, name, spec, name))
	}
	return objects(t, strings.Join(documents, "---\n"))
}

// recorded returns the update revision of the set with the name, which records the template.
func recorded(t *testing.T, name string, recorded *corev1.PodTemplateSpec) *appsv1.ControllerRevision {
	t.Helper()
	content, err := revision.Content(recorded)
	expect.NoError(t, err)
	rev := &appsv1.ControllerRevision{}
	rev.Namespace, rev.Name, rev.Data.Raw = "game", name+"-1", content
	return rev
}

// TestCheckBack compares the findings about a return to OpenKruise with the files in testdata.
func TestCheckBack(t *testing.T) {
	same := &corev1.PodTemplateSpec{}
	same.Labels = map[string]string{"app": "x"}
	same.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	other := same.DeepCopy()
	other.Spec.Containers[0].Image = "j"
	old := recorded(t, "old", same)
	old.Data.Raw = []byte(strings.ReplaceAll(string(old.Data.Raw), `"creationTimestamp":null,`, ""))

	refused := setsWith(t, "StatefulSet", map[string]string{
		"recreate":  "updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: ReCreate}}",
		"no-gate":   "updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}",
		"only":      "updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceOnly}}",
		"on-delete": "updateStrategy: {type: OnDelete, rollingUpdate: {partition: 0}}",
		"start":     "ordinals: {start: 3}",
		"newer":     "updateStrategy: {rollingUpdate: {inPlaceUpdateStrategy: {imagePreDownloadMinUpdatedReadyPods: 1}}}",
		"several":   "updateStrategy: {rollingUpdate: {maxUnavailable: 2}}",
		"parallel":  "podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}",
	})
	gated := setsWith(t, "StatefulSet", map[string]string{
		"gate": "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}",
	})
	if err := unstructured.SetNestedSlice(gated[0].Object, []any{map[string]any{"conditionType": "InPlaceUpdateReady"}},
		"spec", "template", "spec", "readinessGates"); err != nil {
		t.Fatal(err)
	}
	stale := &unstructured.Unstructured{Object: map[string]any{"kind": "PodProbeMarker", "spec": map[string]any{"probes": []any{
		map[string]any{"name": "never"}, map[string]any{"name": "primary", "staleAfterSeconds": int64(30)},
	}}}}
	stale.SetNamespace("ns")
	stale.SetName("database")
	for name, cluster := range map[string]migration.Cluster{
		"return": {
			Markers: []*unstructured.Unstructured{stale},
			Objects: byKind(refused, gated, setsWith(t, "CloneSet", map[string]string{
				"in-place": "updateStrategy: {type: InPlaceOnly}", // OpenKruise adds the gate itself.
				"scatter":  "updateStrategy: {scatterStrategy: [{key: a, value: b}, {key: a, value: c}]}",
				"newer":    "scaleStrategy: {excludePreparingDelete: true}\n  updateStrategy: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 2, imagePreDownloadTimeoutSeconds: 60}}",
				"twice":    "updateStrategy: {scatterStrategy: [{key: a, value: b}, {key: a, value: b}]}",
			})),
			Manager: &migration.Manager{Namespace: "kruise-system", Name: "kruise-controller-manager"},
		},
		"markers of a return": {Markers: []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker",
			"metadata": map[string]any{"namespace": "ns", "name": "fast"},
			"spec": map[string]any{"probes": []any{
				map[string]any{"probe": map[string]any{"periodSeconds": int64(1)}, "startupPolicy": "WaitForStarted"},
				map[string]any{"probe": map[string]any{"periodMilliseconds": int64(200), "timeoutMilliseconds": int64(100)}},
			}},
		}}}},
		"revisions of a return": {
			Objects: byKind(setsWith(t, "CloneSet", map[string]string{
				"known": "", "old": "", "defaults": "", "begins": "", "broken": "", "missing": "",
			})),
			Revisions: []*appsv1.ControllerRevision{
				recorded(t, "known", same), old, recorded(t, "defaults", template.WithDefaults(same)), recorded(t, "begins", other),
				{ObjectMeta: recorded(t, "broken", same).ObjectMeta},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := migration.CheckBack(cluster)
			expect.NoError(t, err)
			golden.Compare(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt"), text(found))
		})
	}
}

// TestCheckBackOfMarkers checks that the fields which OpenKruise's CRD removes are named.
func TestCheckBackOfMarkers(t *testing.T) {
	markers := objects(t, `apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {namespace: game, name: arena}
spec:
  selector: {matchLabels: {app: x}}
  probes:
  - name: stats
    containerName: c
    probe: {exec: {command: [cat, /stats]}}
    markerPolicy:
    - {state: Succeeded, labels: {up: "true"}, exclusive: {}}
    - {state: Failed, labelsFrom: [{key: map}]}
`)
	found, err := migration.CheckBack(migration.Cluster{Markers: markers})
	if err != nil || len(found) != 2 || found[0].Field != "spec.probes[0].markerPolicy[0].exclusive" ||
		found[1].Field != "spec.probes[0].markerPolicy[1].labelsFrom" || found[0].Object() != "PodProbeMarker game/arena" {
		t.Errorf("findings %+v, %v; want one about exclusive and one about labelsFrom", found, err)
	}
}
