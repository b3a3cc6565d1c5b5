// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMarkersSetMarks(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "flag")
	r := start(t, `
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
	r.await(
		"game-0 phase Pending",
		"game-0 condition Initialized=True",
		"game-0/server event Normal Started Container started",
		"game-0 phase Running",
	)
	r.await("game-1/server stdout: hello from game-1 at 127.")
	r.await(
		`game-1/server probe Markeridle Failed streak=1 ran=true transition=true "I am game-1"`,
		"game-1/server event Normal KruiseProbeFailed game#idle: I am game-1",
		"game-1 label idle=false",
		"game-1 annotation busy=yes",
		"game-1 condition game.io/idle=False",
		"game-1 condition Ready=False ReadinessGatesNotReady",
	)
	write(t, flag, "")
	r.await(
		"game-1/server event Normal KruiseProbeSucceeded game#idle: I am game-1",
		"game-1 label idle=true",
		"game-1 annotation busy=yes removed=true",
		"game-1 condition game.io/idle=True",
		"game-1 condition Ready=True",
	)
	r.stop()
	r.await("game-0/server event Normal Killing Stopping container server")
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, `    ports: [{name: http, containerPort: 1}]
    startupProbe: {exec: {command: [no-such-probe]}}
    lifecycle: {preStop: {exec: {command: [/missing/program]}}}`,
		marker("a", "matchLabels: {app: p}", `
  {name: one, containerName: other, podConditionType: a/one, probe: {exec: {command: ["true"]}}},
  {name: two, containerName: main, podConditionType: a/two, probe: {tcpSocket: {port: https}}},
  {name: three, containerName: main, podConditionType: a/three, probe: {exec: {command: ["true"]}}}`),
		marker("b", "matchLabels: {app: p}", `{name: three, containerName: main, podConditionType: a/three, probe: {exec: {command: ["true"]}}}`),
		marker("c", "matchLabels: {app: none}", `{name: one, containerName: main, podConditionType: a/one, probe: {exec: {command: ["true"]}}}`),
		marker("d", "matchLabels: {app: p}", `{name: one, containerName: main, podConditionType: d/one, probe: {exec: {command: [no-such-marker]}}}`),
	)
	want := []string{
		"test.yaml:28:8: PodProbeMarker c: selector matches no pods",
		`test.yaml:9:37: Pod p: container main: startupProbe: no program "no-such-probe" on this machine`,
		`test.yaml:10:44: Pod p: container main: lifecycle.preStop: no program "/missing/program" on this machine`,
		"test.yaml:16:3: probe a#one is skipped for pod p: container \"other\" not found",
		"test.yaml:17:3: probe a#two is skipped for pod p: container \"main\" has no port \"https\"",
		`test.yaml:33:135: probe d#one: no program "no-such-marker" on this machine`,
		"test.yaml:23:52: probe b#three does not set a mark on pod p: condition \"a/three\" is set by probe \"three\" of marker \"a\"",
	}
	expect.Equal(t, "warnings", want, r.Warnings())
}

// A container of a SidecarSet is a process of the pod, and a probe of a marker can name it.
func TestSidecarSet(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, "", `
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: agents}
spec:
  selector: {matchLabels: {app: p}}
  initContainers:
  - {name: first, command: [sh, -c, 'echo first']}
  containers:
  - {name: agent, command: [sh, -c, 'echo agent; sleep 1000'], env: [{name: A, value: a}]}
`, marker("m", "matchLabels: {app: p}", `{name: agent, containerName: agent, probe: {exec: {command: [sh, -c, '[ $A = a ]']}},
  markerPolicy: [{state: Succeeded, labels: {agent: "true"}}]}`))
	r.await("p/first stdout: first", "p/agent stdout: agent", "p label agent=true")
}

// A program, a hook and a probe that use the mount path of a volume get a hint, each container once for each volume.
func TestMountPathIsNamed(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  volumes: [{name: scripts, emptyDir: {}}, {name: data, emptyDir: {}}, {name: parent, emptyDir: {}}]
  restartPolicy: Always
  containers:
  - {name: missing, command: [/missing/scripts/run], volumeMounts: [{name: scripts, mountPath: /missing/scripts}]}
  - {name: message, command: [sh, -c, 'D=/missing; cat $D/data/x; sleep 1000'], volumeMounts: [{name: data, mountPath: /missing/data}]}
  - name: hooked
    command: [sleep, "1000"]
    lifecycle: {postStart: {exec: {command: [ls, /missing/scripts]}}}
    volumeMounts: [{name: scripts, mountPath: /missing/scripts}]
  - name: probed
    command: [sleep, "1000"]
    readinessProbe: {periodSeconds: 1, exec: {command: [test, -e, /missing/data/ready]}}
    livenessProbe: {exec: {command: [test, -d, $(SEAMARK_VOLUME_SCRIPTS)]}}
    env: [{name: SEAMARK_VOLUME_SCRIPTS, value: /missing/scripts}]
    volumeMounts: [{name: data, mountPath: /missing/data}, {name: scripts, mountPath: /missing/scripts}]
  - name: silent
    command: [sh, -c, 'exec 2>/dev/null; echo >/missing/data/ready; sleep 1000']
    readinessProbe: {periodSeconds: 1, tcpSocket: {port: 9}}
    volumeMounts: [{name: data, mountPath: /missing/data}]
  - name: portable
    command: [sh, -c, 'ls ${SEAMARK_VOLUME_DATA:-$DATA} ${SEAMARK_VOLUME_SCRIPTS:-/missing}; sleep 1000']
    env: [{name: DATA, value: /missing/data}]
    readinessProbe: {periodSeconds: 1, exec: {command: ["false"]}}
    livenessProbe: {periodSeconds: 1, failureThreshold: 100, exec: {command: [test, -e, /missing/scripts/sub/x]}}
    volumeMounts: [{name: data, mountPath: /missing/data}, {name: scripts, mountPath: /missing/scripts/sub}, {name: parent, mountPath: /missing/scripts}]
`)
	for _, want := range []string{
		"p/missing event Warning VolumeNotMounted /missing/scripts is the mount path of volume scripts (test.yaml:6:13), and a local run mounts nothing: " +
			"the folder of the volume is in the variable SEAMARK_VOLUME_SCRIPTS",
		"p/message event Warning VolumeNotMounted /missing/data is the mount path of volume data (test.yaml:6:44), ",
		"p/hooked event Warning VolumeNotMounted /missing/scripts ",
		"p/probed event Warning VolumeNotMounted /missing/data ",
		"p/silent event Warning VolumeNotMounted /missing/data ",
		"p/portable event Warning VolumeNotMounted /missing/scripts/sub ",
		"p/portable event Warning Unhealthy Readiness",
		"p/missing event Warning BackOff",
	} {
		r.await(want)
	}
	expect.Equal(t, "events of one container", 1, r.count("p/missing event Warning VolumeNotMounted"))
	// The program uses the variables, and the probe names one path only, which is below another one.
	expect.Equal(t, "events of the container that uses the variables", 1, r.count("p/portable event Warning VolumeNotMounted"))
	// The variable in the liveness probe is the folder.
	expect.Equal(t, "events about the volume of the variable", 0, r.count("p/probed event Warning VolumeNotMounted /missing/scripts"))
}

// The selector of b matches because of a mark of a. The selector of z stops matching because
// of its own mark, so its mark is set and removed repeatedly, but at a limited rate.
func TestMarksChangeWhichMarkersMatch(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, "",
		marker("a", "matchLabels: {app: p}",
			`{name: one, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {next: "yes"}}]}`),
		marker("b", `matchLabels: {next: "yes"}`, `{name: two, containerName: main, podConditionType: b/two, probe: {exec: {command: ["true"]}}}`),
		marker("w", `matchLabels: {z: "yes"}`,
			`{name: four, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {w: "yes"}}]}`),
		marker("z", "matchExpressions: [{key: w, operator: DoesNotExist}]",
			`{name: three, containerName: main, probe: {exec: {command: ["true"]}}, markerPolicy: [{state: Succeeded, labels: {z: "yes"}}]}`),
	)
	r.await("p label next=yes", "p condition b/two=True")
	from := time.Now()
	before := r.count("p label z=")
	r.await("p label z=yes removed=false", "p label z=yes removed=true", "p label z=yes removed=false", "p label z=yes removed=true")
	took := time.Since(from)
	if n := r.count("p label z=") - before; float64(n) > 2+2*took.Seconds()/0.1 {
		t.Errorf("label z changed %d times in %s", n, took)
	}
}

func TestTemporaryFolderIsEmptyAtEachStart(t *testing.T) {
	t.Parallel()
	r := startMain(t, `[sh, -c, 'ls -A $TMPDIR | wc -l; touch $TMPDIR/file; pwd; echo $HOSTNAME; exit 1']`, "")
	r.await("p/main stdout: 0", "p/main stdout: p", "p/main event Normal Started", "p/main stdout: 0")
	if n := r.count("p/main stdout: 1"); n > 0 {
		t.Error("a restarted container found the files of the run before")
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	r := startMain(t, `[sh, -c, 'echo hello; exec sleep 1000']`, `
    livenessProbe: {exec: {command: [echo, alive]}, periodSeconds: 1, failureThreshold: 5}
    startupProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`, marker("a", "matchLabels: {app: p}", `{
    name: one, containerName: main, markerPolicy: [{state: Failed, labels: {one: failed}}],
    probe: {exec: {command: [sh, -c, 'echo no; exit 1']}, periodSeconds: 1, failureThreshold: 2}}`))
	r.await("p/main probe Liveness Succeeded streak=2")
	r.await("p/main probe Markerone Failed streak=2", "p label one=failed")
	view := r.Snapshot()[0]
	ignored := cmpopts.IgnoreFields(local.ProbeChange{}, "LastTransition", "LastProbe", "Runs", "Streak")
	want := []local.ProbeChange{
		{Type: local.ProbeStartup, Container: "main", Handler: "exec", State: v1alpha1.ProbeSucceeded, Success: true, Threshold: 1},
		{
			Type: local.ProbeLiveness, Container: "main", Handler: "exec", Active: true, State: v1alpha1.ProbeSucceeded,
			Message: "alive", Success: true, Output: "alive", Threshold: 1,
		},
		{
			Type: local.ProbeMarker, Marker: "a", Name: "one", Container: "main", Handler: "exec", Active: true,
			State: v1alpha1.ProbeFailed, Message: "no", Output: "no", Threshold: 2,
		},
	}
	expect.Equal(t, "probes", want, view.Probes, ignored)
	expect.Equal(t, "MarkedLabels", []string{"one"}, view.MarkedLabels)
	if len(view.Logs) != 1 || view.Logs[0].Log.Text != "hello" {
		t.Errorf("logs are %v, want one line", view.Logs)
	}
	if c := view.Pod.Status.ContainerStatuses[0]; !strings.HasPrefix(c.ContainerID, "local://") || !c.Ready {
		t.Errorf("container status is %+v, want a ready container with a local ID", c)
	}
}

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

// TestProbeThatCannotRun has a probe whose program does not exist until the test creates it. The
// pod gets one Warning event, and no mark before the first result.
func TestProbeThatCannotRun(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "check")
	r := startMain(t, sleeps, "", marker("typo", "matchLabels: {app: p}",
		`{name: late, containerName: main, podConditionType: typo/late, probe: {exec: {command: ["`+program+`"]}, periodSeconds: 1}}`))
	r.await("p/main event Warning KruiseProbeError typo#late: start " + program + ": no such file or directory")
	expect.Equal(t, "changes of the condition before the first result", 0, r.count("p condition typo/late="))
	write(t, program+".new", "#!/bin/sh\n")
	expect.NoError(t, errors.Join(os.Chmod(program+".new", 0o700), os.Rename(program+".new", program)))
	r.await("p condition typo/late=True")
	expect.Equal(t, "events", 1, r.count("p/main event Warning KruiseProbeError"))
}
