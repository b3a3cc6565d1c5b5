// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
)

// pod returns the manifest of a pod with its spec, whose first line is indented by two.
func pod(name, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + name + "}}\nspec:\n" + spec
}

func TestLivenessRestarts(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sh, -c, 'touch $TMPDIR/healthy; (sleep 1; rm $TMPDIR/healthy) & exec sleep 1000']
    livenessProbe:
      exec: {command: [cat, healthy.does-not-matter]}
      periodSeconds: 1
      failureThreshold: 2
      terminationGracePeriodSeconds: 1
    workingDir: /
`))
	b.await(
		"p/main event Normal Started",
		"p/main event Warning Unhealthy Liveness probe failed: cat: healthy.does-not-matter: No such file",
		"p/main event Warning Unhealthy Liveness probe failed: cat",
		"p/main probe Liveness Failed streak=2 ran=true transition=true",
		"p/main event Normal Killing Container main failed liveness probe, will be restarted",
		"p/main event Normal Started",
		"p/main container Running ready=true restarts=1",
		"p/main probe Liveness  streak=1",
		"p/main event Normal Killing Container main failed liveness probe, will be restarted",
		"p/main container Running ready=true restarts=2",
	)
}

func TestStartupHoldsBackTheOthers(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "started")
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sleep, "1000"]
    startupProbe: {exec: {command: [test, -e, `+flag+`]}, periodSeconds: 1, failureThreshold: 60}
    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`))
	b.await(
		"p/main container Running ready=false",
		"p/main event Warning Unhealthy Startup probe failed: ",
		"p/main event Warning Unhealthy Startup probe failed: ",
	)
	if n := b.count("p/main probe Liveness") + b.count("p/main probe Readiness"); n > 0 {
		t.Errorf("%d runs of other probes before the startup probe has succeeded", n)
	}
	write(t, flag, "")
	b.await("p/main probe Startup Succeeded", "p condition Ready=True")
	b.await("p/main probe Startup Succeeded", "p/main probe Liveness Succeeded")
	if n := b.count("p/main probe Startup Succeeded"); n != 1 {
		t.Errorf("the startup probe has succeeded %d times, want once", n)
	}
}

func TestStartupFailureKills(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  restartPolicy: Never
  containers:
  - name: main
    command: [sleep, "1000"]
    startupProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}
`))
	b.await(
		"p/main event Warning Unhealthy Startup probe failed: exited with code 1",
		"p/main event Normal Killing Container main failed startup probe",
		"p/main container Terminated Error 143 ready=false restarts=0",
		"p phase Failed",
	)
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sh, -c, 'echo started; exit 3']
`))
	b.await(
		"p/main event Normal Started",
		"p/main container Terminated Error 3 ready=false restarts=0",
	)
	b.await(
		"p/main container Waiting CrashLoopBackOff ready=false restarts=1",
		"p/main container Waiting CrashLoopBackOff ready=false restarts=2",
	)
	b.await("p/main event Warning BackOff Back-off restarting failed container main in pod p_default(")
	status := b.Snapshot()[0].Pod.Status.ContainerStatuses[0]
	if last := status.LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
		t.Errorf("last termination %v, want exit code 3", last)
	}
}

func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy, command string
		want            []string
	}{
		"OnFailure, success": {"OnFailure", "true", []string{"p/main container Terminated Completed 0", "p phase Succeeded"}},
		"OnFailure, failure": {"OnFailure", "false", []string{"p/main container Waiting CrashLoopBackOff ready=false restarts=1"}},
		"Never, failure":     {"Never", "false", []string{"p/main container Terminated Error 1", "p phase Failed"}},
		"Always, success":    {"Always", "true", []string{"p/main container Waiting CrashLoopBackOff ready=false restarts=1"}},
		"Never, no program":  {"Never", "no-such-program", []string{"p/main container Terminated StartError 128", "p phase Failed"}},
		"no such program":    {"Always", "no-such-program", []string{"p/main event Warning Failed Error: start no-such-program: no such program in PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, pod("p", `
  restartPolicy: `+test.policy+`
  containers: [{name: main, command: ["`+test.command+`"]}]
`))
			b.await(test.want...)
		})
	}
}

func TestInitContainersAndSidecars(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "started")
	b := start(t, pod("p", `
  restartPolicy: Never
  initContainers:
  - {name: first, command: [sh, -c, 'echo first > $SEAMARK_VOLUME_SHARED/file'], volumeMounts: [{name: shared, mountPath: /shared}]}
  - name: side
    restartPolicy: Always
    command: [sh, -c, 'trap "echo side ends; exit 0" TERM; while true; do sleep 0.05; done']
    startupProbe: {exec: {command: [test, -e, `+flag+`]}, periodSeconds: 1, failureThreshold: 60}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
  containers:
  - {name: main, command: [sh, -c, 'cat $SEAMARK_VOLUME_SHARED/file; sleep 1'], volumeMounts: [{name: shared, mountPath: /shared}]}
  volumes: [{name: shared, emptyDir: {}}]
`))
	b.await(
		"p/first event Normal Started",
		"p/first container Terminated Completed 0 ready=true",
		"p/side event Normal Started",
		"p/side event Warning Unhealthy Startup probe failed",
	)
	if b.count("p/main event") > 0 {
		t.Error("the container has started before the sidecar")
	}
	write(t, flag, "")
	b.await(
		"p/side probe Startup Succeeded",
		"p/main event Normal Started",
		"p condition Initialized=True",
		"p phase Running",
		"p/main stdout: first",
		"p/main container Terminated Completed 0",
		"p/side event Normal Killing Stopping container side",
		"p phase Succeeded",
	)
	b.await("p/side stdout: side ends")
}

func TestFailedInitContainer(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  restartPolicy: Never
  initContainers: [{name: init, command: ["false"]}]
  containers: [{name: main, command: ["true"]}]
`))
	b.await("p/init container Terminated Error 1", "p phase Failed")
	if b.count("p/main event") > 0 {
		t.Error("the container has started though the init container failed")
	}
}

func TestHooksAndGrace(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  terminationGracePeriodSeconds: 3
  containers:
  - name: main
    command: [sh, -c, 'trap "" TERM; while true; do sleep 0.05; [ -e $TMPDIR/stopping ] && echo asked && rm $TMPDIR/stopping; done']
    lifecycle:
      postStart: {exec: {command: [sh, -c, 'echo posted > $TMPDIR/posted']}}
      preStop: {exec: {command: [sh, -c, 'cat $TMPDIR/posted && touch $TMPDIR/stopping; sleep 0.5']}}
`))
	b.await("p/main container Running ready=true")
	from := time.Now()
	b.stop()
	took := time.Since(from)
	b.await(
		"p/main event Normal Killing Stopping container main",
		"p/main stdout: asked",
		"p/main container Terminated Error 137",
	)
	if took < 2900*time.Millisecond {
		t.Errorf("killed after %s, want the grace of 3s to pass: the container ignores SIGTERM", took)
	}
	if n := b.count("p/main event Warning FailedPreStopHook"); n > 0 {
		t.Error("the preStop hook has failed")
	}
}

func TestFailedPostStartHook(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sleep, "1000"]
    lifecycle: {postStart: {exec: {command: ["false"]}}}
`))
	b.await(
		"p/main event Normal Started",
		"p/main event Warning FailedPostStartHook PostStartHook failed",
		"p/main event Normal Killing FailedPostStartHook",
		"p/main event Normal Started",
	)
	if n := b.count("p/main container Running ready=true"); n > 0 {
		t.Error("the container counts as running though its hook has failed")
	}
}

func TestProbeTimeout(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sleep, "1000"]
    readinessProbe: {exec: {command: [sh, -c, 'echo slow; sleep 500 & sleep 500']}, periodSeconds: 1}
`))
	b.await("p/main event Warning Unhealthy Readiness probe failed: timed out after 1s\nslow")
	b.await("p/main probe Readiness Failed streak=3 ran=true transition=true")
}

func TestKillEndsAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers: [{name: main, command: [sh, -c, 'trap "" TERM; echo up; while true; do sleep 0.1; done']}]
`))
	b.await("p/main stdout: up")
	b.cancel()
	b.await("p/main event Normal Killing")
	from := time.Now()
	b.Kill()
	b.stop()
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("killed after %s, want at once", took)
	}
}

func TestReplicasListenOnOnePort(t *testing.T) {
	t.Parallel()
	manifest := `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        command: [python3, -m, http.server, --bind, $(POD_IP), "18123"]
        env: [{name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
        ports: [{name: http, containerPort: 18123}]
        readinessProbe: {httpGet: {port: http}, periodSeconds: 1}
        livenessProbe: {tcpSocket: {port: http}, initialDelaySeconds: 5}
`
	b := start(t, manifest)
	b.await("web-0 condition Ready=True")
	b.await("web-1 condition Ready=True")
	views := b.Snapshot()
	if views[0].Pod.Status.PodIP == views[1].Pod.Status.PodIP {
		t.Errorf("both pods have %s", views[0].Pod.Status.PodIP)
	}
}

func TestSharedAddressRefusesCollisions(t *testing.T) {
	t.Parallel()
	one := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Command: []string{"true"}, Ports: []corev1.ContainerPort{{ContainerPort: 80}},
	}}}}
	other := one
	one.Name, other.Name = "one", "other"
	options := local.Options{SharedAddress: true}
	options.Objects.Pods = []*corev1.Pod{&one, &other}
	_, err := local.New(options)
	if err == nil || !strings.Contains(err.Error(), "pods one and other both use port 80 (TCP)") {
		t.Errorf("got %v, want the two pods and the port named", err)
	}
	options.Objects.Pods = options.Objects.Pods[:1]
	if _, err := local.New(options); err != nil {
		t.Errorf("one pod can't collide: %v", err)
	}
}

// A probe that is killed with its container has not failed.
func TestAProbeEndsWithItsContainer(t *testing.T) {
	t.Parallel()
	b := start(t, pod("p", `
  containers:
  - name: main
    command: [sh, -c, 'sleep 0.5; exit 1']
    livenessProbe: {exec: {command: [sleep, "1000"]}, timeoutSeconds: 60, periodSeconds: 1, failureThreshold: 1}
`))
	b.await(
		"p/main container Terminated Error 1", "p/main event Warning BackOff",
		"p/main container Running ready=true restarts=2", "p/main event Warning BackOff",
	)
	if n := b.count("p/main event Warning Unhealthy Liveness probe failed") + b.count("p/main event Normal Killing"); n > 0 {
		t.Errorf("%d probes have failed, or killed the container", n)
	}
}
