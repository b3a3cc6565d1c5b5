// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/process/processtest"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

// freePort returns a port that no process listens on. It is below the range from which the
// kernel chooses ports, so that none takes it before the test does.
func freePort(t *testing.T) int {
	t.Helper()
	const lowest, count, tries = 20000, 12000, 100
	for range tries {
		port := lowest + rand.IntN(count)
		if listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port)); err == nil {
			listener.Close()
			return port
		}
	}
	t.Fatalf("no free port in %d tries", tries)
	return 0
}

// server returns the container of a deployment that listens on an address.
func server(replicas, port int, address string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        command: [%q]
        env:
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: %s, value: %q}
        readinessProbe: {tcpSocket: {port: %d}, periodSeconds: 1}
`, replicas, os.Args[0], listenAddress, address, port)
}

func TestTakenPortPreventsTheRun(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp4", "0.0.0.0:0")
	expect.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	manifests := server(1, port, fmt.Sprintf("$(IP):%d", port))
	objects, err := manifest.Read(t.Context(), []document.File{{Name: "test.yaml", Content: []byte(manifests)}}, manifest.Options{})
	expect.NoError(t, err)
	runner, err := local.New(local.Options{Objects: objects})
	expect.NoError(t, err)
	err = runner.Run(context.Background())
	want := fmt.Sprintf(
		"port %d of pod web-0 is taken: process local.test (PID %d) listens on 0.0.0.0:%d: stop it, or use another port", port, os.Getpid(), port,
	)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPodsOnTheirOwnAddressesAreReady(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	r := start(t, server(2, port, fmt.Sprintf("$(IP):%d", port)))
	r.await("web-0 condition Ready=True")
	r.await("web-1 condition Ready=True")
}

func TestSecondPodOnAllAddressesIsNotReady(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	r := start(t, server(2, port, fmt.Sprintf("0.0.0.0:%d", port)))
	processtest.Eventually(t, "the second pod names the first", func() bool {
		for _, line := range r.lines() {
			if strings.Contains(line, fmt.Sprintf("event Warning PortInUse port %d is taken: pod web-", port)) &&
				strings.Contains(line, "which a variable with fieldRef status.podIP contains") {
				return true
			}
		}
		return false
	})
	r.await("web-")
	if r.count("web-0 condition Ready=True") > 0 && r.count("web-1 condition Ready=True") > 0 {
		t.Error("both pods are ready, although only one listens")
	}
}

// The probed container does not listen. Another process starts to do so later.
func TestAnswerOfAnotherProcessIsAFailure(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	r := startMain(t, sleeps, fmt.Sprintf("    readinessProbe: {tcpSocket: {port: %d}, periodSeconds: 1}\n", port))
	r.await("p/main event Warning Unhealthy Readiness probe failed: ")
	other, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
	expect.NoError(t, err)
	defer other.Close()
	r.await(fmt.Sprintf("p/main event Warning Unhealthy Readiness probe failed: another process answers on port %d: "+
		"process local.test (PID %d) listens on 0.0.0.0:%d",
		port, os.Getpid(), port))
	if n := r.count("p condition Ready=True"); n > 0 {
		t.Error("pod was ready")
	}
}

// The server leaves its session and clears its environment, and its parent ends at once.
func TestServerThatBecameDaemonAnswersForItsPod(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	daemon := fmt.Sprintf("(env -i PATH=$PATH %s=0.0.0.0:%d setsid timeout 60 %s &); exec sleep 1000", listenAddress, port, os.Args[0])
	r := startMain(t, "[sh, -c, '"+daemon+"']", fmt.Sprintf("    readinessProbe: {tcpSocket: {port: %d}, periodSeconds: 1}\n", port))
	r.await("p condition Ready=True")
	for _, line := range r.lines() {
		if strings.Contains(line, "another process answers") {
			t.Errorf("the pod's own server is foreign: %s", line)
		}
	}
}
