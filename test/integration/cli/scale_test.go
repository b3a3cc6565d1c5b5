// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/fill"
	"github.com/seamark-dev/seamark/test/process"
)

const (
	// podsVariable is the environment variable with the number of pods of TestGetOfManyPods.
	podsVariable = "SEAMARK_CLI_PODS"
	defaultPods  = 500
)

// TestGetOfManyPods checks that `seamark get -A` lists every probe, and prints what it takes next to
// kubectl. It does not limit the time, which depends on the machine.
func TestGetOfManyPods(t *testing.T) {
	count := defaultPods
	if text := os.Getenv(podsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 1 {
			t.Fatalf("%s: %q is invalid: must be a positive number", podsVariable, text)
		}
	}
	program, err := process.Built("seamark", "test-integration")
	if err != nil {
		t.Fatal(err)
	}
	namespace := shared.Namespace(t)
	filler := fill.Filler{
		Config: shared.Config, Client: shared.Client, Namespace: namespace, Pods: count,
		Pod: func(namespace, name, node string) *corev1.Pod {
			return builders.Pod(namespace, name).Label("app", "game").Node(node).Build()
		},
	}
	if err := filler.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubeconfig := env.Kubeconfig(t, shared.Config)
	cost := measure(t, program, "get", "-A", "-o", "wide", "--kubeconfig="+kubeconfig)
	t.Logf("seamark get -A of %d pods: %s, %s of processor time", count, cost.elapsed, cost.processor)
	if kubectl, err := exec.LookPath(os.Getenv(env.BinariesVariable) + "/kubectl"); err == nil {
		other := measure(t, kubectl, "get", "pods", "-A", "-o", "wide", "--kubeconfig="+kubeconfig)
		t.Logf("kubectl get pods -A: %s, %s of processor time", other.elapsed, other.processor)
	}
	rows := 0
	for line := range strings.Lines(cost.output) {
		if strings.HasPrefix(line, namespace+" ") {
			rows++
		}
	}
	if want := count * fill.ProbesPerPod; rows != want {
		t.Errorf("%d rows of namespace %s, want %d", rows, namespace, want)
	}
}

// cost is what one run of a program takes, and what it prints.
type cost struct {
	elapsed, processor time.Duration
	output             string
}

func measure(t *testing.T, program string, args ...string) cost {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stderr = os.Stderr
	start := time.Now()
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return cost{
		elapsed: time.Since(start).Round(time.Millisecond), output: string(output),
		processor: command.ProcessState.UserTime() + command.ProcessState.SystemTime(),
	}
}
