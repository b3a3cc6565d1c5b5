// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"path/filepath"
	"testing"
)

func TestMarkers(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "flag")
	b := start(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: game}
spec:
  replicas: 2
  selector: {matchLabels: {app: game}}
  template:
    metadata: {labels: {app: game}}
    spec:
      readinessGates: [{conditionType: game.io/idle}]
      containers:
      - name: server
        command: [sh, -c, 'echo "hello from $MY_NAME at $MY_IP"; exec sleep 1000']
        env:
        - {name: MY_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: MY_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: PodProbeMarker
metadata: {name: game}
spec:
  selector: {matchLabels: {app: game}}
  probes:
  - name: idle
    containerName: server
    probe:
      exec: {command: [sh, -c, 'echo I am $HOSTNAME; test -e `+flag+`']}
      periodSeconds: 1
      failureThreshold: 1
    podConditionType: game.io/idle
    markerPolicy:
    - {state: Succeeded, labels: {idle: "true"}}
    - {state: Failed, labels: {idle: "false"}, annotations: {busy: "yes"}}
`)
	b.await(
		"game-0 phase Pending",
		"game-0 condition Initialized=True",
		"game-0/server event Normal Started Container started",
		"game-0 phase Running",
	)
	b.await("game-1/server stdout: hello from game-1 at 127.")
	b.await(
		`game-1/server probe Markeridle Failed streak=1 ran=true transition=true "I am game-1"`,
		"game-1/server event Normal KruiseProbeFailed game#idle: I am game-1",
		"game-1 label idle=false",
		"game-1 annotation busy=yes",
		"game-1 condition game.io/idle=False",
		"game-1 condition Ready=False ReadinessGatesNotReady",
	)
	write(t, flag, "")
	b.await(
		"game-1/server event Normal KruiseProbeSucceeded game#idle: I am game-1",
		"game-1 label idle=true",
		"game-1 annotation busy=yes removed=true",
		"game-1 condition game.io/idle=True",
		"game-1 condition Ready=True",
	)
	b.stop()
	b.await("game-0/server event Normal Killing Stopping container server")
}
