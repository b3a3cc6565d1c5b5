// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/process/processtest"
	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/document"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) {
	local.Reaper()
	if file := os.Getenv(crashManifest); file != "" {
		runToCrash(file)
	}
	if address := os.Getenv(listenAddress); address != "" {
		serve(address)
	}
	goleak.VerifyTestMain(m)
}

// crashManifest is the variable that makes the test program run a manifest instead of tests.
const crashManifest = "LOCAL_TEST_CRASH_MANIFEST"

// runToCrash runs a manifest until the program is killed.
func runToCrash(file string) {
	fmt.Fprintln(os.Stderr, run(context.Background(), file))
	os.Exit(1)
}

// listenAddress is the variable that makes the test program accept connections.
const listenAddress = "LOCAL_TEST_LISTEN"

// serve accepts connections on an address until the program is killed.
func serve(address string) {
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		connection, err := listener.Accept()
		if err == nil {
			_ = connection.Close()
		}
	}
}

func run(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	objects, err := manifest.Read(ctx, []document.File{{Name: file, Content: content}}, manifest.Options{})
	if err != nil {
		return err
	}
	runner, err := local.New(local.Options{Objects: objects})
	if err != nil {
		return err
	}
	return runner.Run(ctx)
}

// testRun is a run of pods that keeps the changes.
type testRun struct {
	*local.Runner
	t      *testing.T
	cancel context.CancelFunc
	done   chan error

	mu      sync.Mutex
	changes []local.Change
	more    chan struct{}
}

// start runs manifests with a short crash-loop delay until the test stops the run or ends.
func start(t *testing.T, manifests string) *testRun {
	t.Helper()
	objects, err := manifest.Read(t.Context(), []document.File{{Name: "test.yaml", Content: []byte(manifests)}}, manifest.Options{})
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &testRun{t: t, cancel: cancel, done: make(chan error, 1), more: make(chan struct{}, 1)}
	options := local.Options{
		Objects: objects, Version: "test", Observe: r.observe,
		CrashLoopInitial: 100 * time.Millisecond, CrashLoopMax: time.Second,
	}
	if r.Runner, err = local.New(options); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.Run(ctx) }()
	t.Cleanup(func() {
		r.Kill()
		r.stop()
		if t.Failed() {
			for _, line := range r.lines() {
				t.Log(line)
			}
		}
	})
	return r
}

// pod returns the manifest of a pod. The lines of its spec are indented by two.
func pod(name, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: " + name + "}}\nspec:\n" + spec
}

// marker returns the manifest of a marker, to append to other manifests. The selector and
// the list of probes are YAML in one line.
func marker(name, selector, probes string) string {
	return "\n---\napiVersion: apps.kruise.io/v1alpha1\nkind: PodProbeMarker\nmetadata: {name: " + name + "}\nspec: {selector: {" +
		selector + "}, probes: [" + probes + "]}"
}

func startPod(t *testing.T, spec string, markers ...string) *testRun {
	t.Helper()
	return start(t, pod("p", spec)+strings.Join(markers, ""))
}

// startMain runs a pod p with a container main. The container's fields are indented by
// four.
func startMain(t *testing.T, command, fields string, markers ...string) *testRun {
	t.Helper()
	return startPod(t, "  containers:\n  - name: main\n    command: "+command+"\n"+fields, markers...)
}

// sleeps is the command of a container that does nothing.
const sleeps = `[sleep, "1000"]`

// stop stops the run and waits for its end. It can be called again.
func (r *testRun) stop() {
	r.cancel()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("run ended with: %v", err)
		}
		r.done <- nil
	case <-time.After(processtest.Patience):
		r.t.Fatal("run did not end")
	}
}

func (r *testRun) observe(change local.Change) {
	r.mu.Lock()
	r.changes = append(r.changes, change)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// lines returns the changes, one per line.
func (r *testRun) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(r.changes))
	for _, change := range r.changes {
		lines = append(lines, line(change))
	}
	return lines
}

// await waits for changes with the given prefixes, in this order.
func (r *testRun) await(want ...string) {
	r.t.Helper()
	deadline := time.After(processtest.Patience)
	for {
		missing := want
		for _, got := range r.lines() {
			if len(missing) > 0 && strings.HasPrefix(got, missing[0]) {
				missing = missing[1:]
			}
		}
		if len(missing) == 0 {
			return
		}
		select {
		case <-r.more:
		case <-deadline:
			r.t.Fatalf("change %q did not occur", missing[0])
		}
	}
}

// count returns the number of changes with a prefix.
func (r *testRun) count(prefix string) int {
	n := 0
	for _, got := range r.lines() {
		if strings.HasPrefix(got, prefix) {
			n++
		}
	}
	return n
}

func line(c local.Change) string {
	at := c.Pod
	if c.Container != "" {
		at += "/" + c.Container
	}
	switch c.Kind {
	case local.KindPod:
		return fmt.Sprintf("%s phase %s", at, c.Phase)
	case local.KindContainer:
		return fmt.Sprintf("%s container %s ready=%t restarts=%d", at, stateOf(c.Status), c.Status.Ready, c.Status.RestartCount)
	case local.KindProbe:
		return fmt.Sprintf("%s probe %s%s %s streak=%d ran=%t transition=%t %q", at, c.Probe.Type, c.Probe.Name,
			c.Probe.State, c.Probe.Streak, c.Probe.Ran, c.Probe.Transition, c.Probe.Output)
	case local.KindCondition:
		return fmt.Sprintf("%s condition %s=%s %s %s", at, c.Condition.Type, c.Condition.Status, c.Condition.Reason, c.Condition.Message)
	case local.KindLabel:
		return fmt.Sprintf("%s label %s=%s removed=%t", at, c.Key, c.Value, c.Removed)
	case local.KindAnnotation:
		return fmt.Sprintf("%s annotation %s=%s removed=%t", at, c.Key, c.Value, c.Removed)
	case local.KindEvent:
		return fmt.Sprintf("%s event %s %s %s", at, c.Event.Type, c.Event.Reason, c.Event.Message)
	case local.KindLog:
		return fmt.Sprintf("%s %s: %s", at, c.Log.Stream, c.Log.Text)
	}
	return string(c.Kind)
}

func stateOf(status *corev1.ContainerStatus) string {
	switch {
	case status.State.Running != nil:
		return "Running"
	case status.State.Waiting != nil:
		return "Waiting " + status.State.Waiting.Reason
	case status.State.Terminated != nil:
		return fmt.Sprintf("Terminated %s %d", status.State.Terminated.Reason, status.State.Terminated.ExitCode)
	}
	return "empty"
}

func write(t *testing.T, path, contents string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, []byte(contents), 0o600))
}
