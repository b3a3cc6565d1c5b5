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

func TestFailedLivenessProbeRestartsContainer(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, `
    livenessProbe:
      exec: {command: [cat, missing]}
      periodSeconds: 1
      failureThreshold: 2
      terminationGracePeriodSeconds: 1
`)
	r.await(
		"p/main event Normal Started",
		"p/main event Warning Unhealthy Liveness probe failed: cat: missing: No such file",
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

func TestStartupProbeHoldsBackOtherProbes(t *testing.T) {
	t.Parallel()
	flag := filepath.Join(t.TempDir(), "started")
	r := startMain(t, sleeps, `
    startupProbe: {exec: {command: [test, -e, `+flag+`]}, periodSeconds: 1, failureThreshold: 60}
    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
    readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}
`)
	r.await(
		"p/main container Running ready=false",
		"p/main event Warning Unhealthy Startup probe failed: ",
		"p/main event Warning Unhealthy Startup probe failed: ",
	)
	if n := r.count("p/main probe Liveness") + r.count("p/main probe Readiness"); n > 0 {
		t.Errorf("%d runs of other probes before the startup probe succeeded", n)
	}
	write(t, flag, "")
	r.await("p/main probe Startup Succeeded", "p condition Ready=True")
	r.await("p/main probe Startup Succeeded", "p/main probe Liveness Succeeded")
	if n := r.count("p/main probe Startup Succeeded"); n != 1 {
		t.Errorf("startup probe succeeded %d times, want 1", n)
	}
}

func TestFailedStartupProbeKillsContainer(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  restartPolicy: Never
  containers:
  - name: main
    command: [sleep, "1000"]
    startupProbe: {exec: {command: ["false"]}, periodSeconds: 1, failureThreshold: 1}
`)
	r.await(
		"p/main event Warning Unhealthy Startup probe failed: exited with code 1",
		"p/main event Normal Killing Container main failed startup probe",
		"p/main container Terminated Error 143 ready=false restarts=0",
		"p phase Failed",
	)
}

func TestCrashLoop(t *testing.T) {
	t.Parallel()
	r := startMain(t, `[sh, -c, 'echo started; exit 3']`, "")
	r.await(
		"p/main event Normal Started",
		"p/main container Terminated Error 3 ready=false restarts=0",
	)
	r.await(
		"p/main container Waiting CrashLoopBackOff ready=false restarts=1",
		"p/main container Waiting CrashLoopBackOff ready=false restarts=2",
	)
	r.await("p/main event Warning BackOff Back-off restarting failed container main in pod p_default(")
	status := r.Snapshot()[0].Pod.Status.ContainerStatuses[0]
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
		"OnFailure, success":      {"OnFailure", "true", []string{"p/main container Terminated Completed 0", "p phase Succeeded"}},
		"OnFailure, failure":      {"OnFailure", "false", []string{"p/main container Waiting CrashLoopBackOff ready=false restarts=1"}},
		"Never, failure":          {"Never", "false", []string{"p/main container Terminated Error 1", "p phase Failed"}},
		"Always, success":         {"Always", "true", []string{"p/main container Waiting CrashLoopBackOff ready=false restarts=1"}},
		"Never, missing program":  {"Never", "no-such-program", []string{"p/main container Terminated StartError 128", "p phase Failed"}},
		"Always, missing program": {"Always", "no-such-program", []string{"p/main event Warning Failed Error: start no-such-program: no such program in PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startPod(t, `
  restartPolicy: `+test.policy+`
  containers: [{name: main, command: ["`+test.command+`"]}]
`)
			r.await(test.want...)
		})
	}
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

func TestFailedInitContainerFailsPod(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  restartPolicy: Never
  initContainers: [{name: init, command: ["false"]}]
  containers: [{name: main, command: ["true"]}]
`)
	r.await("p/init container Terminated Error 1", "p phase Failed")
	if r.count("p/main event") > 0 {
		t.Error("container started after the init container failed")
	}
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

func TestFailedPostStartHookRestartsContainer(t *testing.T) {
	t.Parallel()
	r := startMain(t, sleeps, `
    lifecycle: {postStart: {exec: {command: ["false"]}}}
`)
	r.await(
		"p/main event Normal Started",
		"p/main event Warning FailedPostStartHook PostStartHook failed",
		"p/main event Normal Killing FailedPostStartHook",
		"p/main event Normal Started",
	)
	if n := r.count("p/main container Running ready=true"); n > 0 {
		t.Error("container is reported as running after its hook failed")
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

func TestKillSkipsGracePeriod(t *testing.T) {
	t.Parallel()
	r := startPod(t, `
  containers: [{name: main, command: [sh, -c, 'trap "" TERM; echo up; while true; do sleep 0.1; done']}]
`)
	r.await("p/main stdout: up")
	r.cancel()
	r.await("p/main event Normal Killing")
	from := time.Now()
	r.Kill()
	r.stop()
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("killed after %s, want at once", took)
	}
}

func TestReplicasListenOnSamePort(t *testing.T) {
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
	r := start(t, manifest)
	r.await("web-0 condition Ready=True")
	r.await("web-1 condition Ready=True")
	views := r.Snapshot()
	if views[0].Pod.Status.PodIP == views[1].Pod.Status.PodIP {
		t.Errorf("both pods have address %s", views[0].Pod.Status.PodIP)
	}
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
