// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"fmt"
	"testing"
)

// The report of more pods than a slice has is marked as a whole.
func TestManyReplicasAreMarked(t *testing.T) {
	t.Parallel()
	const replicas = 10
	r := start(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: %d
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {containers: [{name: main, command: %s}]}
`, replicas, sleeps)+marker("m", "matchLabels: {app: many}",
		`{name: p, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {marked: "yes"}}]}`))
	for i := range replicas {
		r.await(fmt.Sprintf("many-%d label marked=yes", i))
	}
}

// The label z of marker x makes w match, whose label stops x from matching. Then z is removed, so
// no marker matches: the pod is not planned, and w is removed although nothing is reported.
func TestMarksOfPodThatIsNotPlannedAreRemoved(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, "",
		marker("w", `matchLabels: {z: "yes"}`,
			`{name: p, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {w: "yes"}}]}`),
		marker("x", "matchExpressions: [{key: w, operator: DoesNotExist}]",
			`{name: p, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {z: "yes"}}]}`),
	)
	r.await("p label z=yes removed=false", "p label w=yes removed=false", "p label z=yes removed=true", "p label w=yes removed=true")
}
