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

func TestCrashShowsLastLineOfStderr(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  restartPolicy: Never
  containers:
  - name: main
    command: [sh, -c, 'echo listening; echo "address in use" >&2; echo >&2; exit 3']
`)
	r.await("p phase Failed")
	end := r.Snapshot()[0].Pod.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.Message != "address in use" || end.ExitCode != 3 {
		t.Errorf("terminated state is %+v, want the line of stderr", end)
	}
}

func TestContainerThatCannotStart(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  restartPolicy: Never
  containers: [{name: main, command: [no-such-program]}]
`)
	r.await(
		"p/main event Warning Failed Error: start no-such-program: no such program in PATH",
		"p/main container Terminated StartError 128", "p phase Failed",
	)
}

func TestInitContainersAndSidecars(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "started")
	r := startPod(t, `
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
`)
	r.await(
		"p/first event Normal Started",
		"p/first container Terminated Completed 0 ready=true",
		"p/side event Normal Started",
		"p/side event Warning Unhealthy Startup probe failed",
	)
	if r.count("p/main event") > 0 {
		t.Error("container started before the sidecar")
	}
	write(t, flag, "")
	r.await(
		"p/side probe Startup Succeeded",
		"p/main event Normal Started",
		"p condition Initialized=True",
		"p phase Running",
		"p/main stdout: first",
		"p/main container Terminated Completed 0",
		"p/side event Normal Killing Stopping container side",
		"p phase Succeeded",
	)
	r.await("p/side stdout: side ends")
}

func TestHooksAndGracePeriod(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  terminationGracePeriodSeconds: 3
  containers:
  - name: main
    command: [sh, -c, 'trap "" TERM; while true; do sleep 0.05; [ -e $TMPDIR/stopping ] && echo asked && rm $TMPDIR/stopping; done']
    lifecycle:
      postStart: {exec: {command: [sh, -c, 'echo posted > $TMPDIR/posted']}}
      preStop: {exec: {command: [sh, -c, 'cat $TMPDIR/posted && touch $TMPDIR/stopping; sleep 0.5']}}
`)
	r.await("p/main container Running ready=true")
	from := time.Now()
	r.stop()
	took := time.Since(from)
	r.await(
		"p/main event Normal Killing Stopping container main",
		"p/main stdout: asked",
		"p/main container Terminated Error 137",
	)
	if took < 2900*time.Millisecond {
		t.Errorf("killed after %s, want 3s: the container ignores SIGTERM", took)
	}
	if n := r.count("p/main event Warning FailedPreStopHook"); n > 0 {
		t.Error("preStop hook failed")
	}
}

func TestExecProbeTimeoutFails(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, `
    readinessProbe: {exec: {command: [sh, -c, 'echo slow; sleep 500 & sleep 500']}, periodSeconds: 1}
`)
	r.await("p/main event Warning Unhealthy Readiness probe failed: timed out after 1s\nslow")
	r.await("p/main probe Readiness Failed streak=3 ran=true transition=true")
}

func TestSharedAddressRejectsPortConflicts(t *testing.T) {
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
		t.Errorf("got error %v, want both pods and the port", err)
	}
	options.Objects.Pods = options.Objects.Pods[:1]
	if _, err := local.New(options); err != nil {
		t.Errorf("one pod: %v", err)
	}
}

// A probe that is killed with its container does not fail.
func TestProbeKilledWithContainerDoesNotFail(t *testing.T) {
	t.Parallel()
	r := startMain(t, `[sh, -c, 'sleep 0.5; exit 1']`, `
    livenessProbe: {exec: {command: [sleep, "1000"]}, timeoutSeconds: 60, periodSeconds: 1, failureThreshold: 1}
`)
	// There is no event about the back-off if the run notices an exit only after its end.
	r.await(
		"p/main container Terminated Error 1",
		"p/main container Running ready=true restarts=1",
		"p/main container Running ready=true restarts=2",
	)
	if n := r.count("p/main event Warning Unhealthy Liveness probe failed") + r.count("p/main event Normal Killing"); n > 0 {
		t.Errorf("%d probes failed or killed the container", n)
	}
}
