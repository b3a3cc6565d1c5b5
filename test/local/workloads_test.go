// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const kruiseWorkloads = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: stateful}
spec:
  replicas: 2
  ordinals: {start: 1}
  reserveOrdinals: [2]
  selector: {matchLabels: {app: kruise}}
  template:
    metadata: {labels: {app: kruise}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, command: [sleep, "60"]}]}
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: clone}
spec:
  replicas: 2
  updateStrategy: {type: InPlaceIfPossible, maxUnavailable: 1}
  selector: {matchLabels: {app: kruise}}
  template:
    metadata: {labels: {app: kruise}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, command: [sleep, "60"]}]}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: all}
spec:
  selector: {matchLabels: {app: kruise}}
  probes:
  - name: up
    containerName: main
    probe: {exec: {command: ["true"]}, periodSeconds: 1}
    markerPolicy: [{state: Succeeded, labels: {up: "true"}}]
`

// TestKruiseWorkloads runs the pods of both kinds of workloads as processes, twice: their names are
// the same in both runs, and a marker marks them.
func TestKruiseWorkloads(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "workloads.yaml")
	if err := os.WriteFile(file, []byte(kruiseWorkloads), 0o600); err != nil {
		t.Fatal(err)
	}
	var names [2][]string
	for i := range names {
		r := seamark(t, "-f", file, "--strict", "--timeout", "30s", "--until", "pod/* label=up:true")
		r.wantCode(t, 0)
		for _, each := range r.records {
			if each.Kind == "Pod" && !slices.Contains(names[i], each.Pod) {
				names[i] = append(names[i], each.Pod)
			}
		}
		slices.Sort(names[i])
	}
	if diff := cmp.Diff(names[0], names[1]); diff != "" {
		t.Errorf("pods of two runs:\n%s", diff)
	}
	if len(names[0]) != 4 || !slices.Contains(names[0], "stateful-1") || !slices.Contains(names[0], "stateful-3") {
		t.Errorf("pods %v, want stateful-1, stateful-3 and two of the CloneSet", names[0])
	}
}
