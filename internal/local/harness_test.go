// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/manifest"
)

func TestMain(m *testing.M) {
	local.Reaper()
	if file := os.Getenv(crashManifest); file != "" {
		runToCrash(file)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test. It is reached only by a test that fails.
const patience = 20 * time.Second

// bench is a run of pods whose changes are kept.
type bench struct {
	*local.Runner
	t      *testing.T
	cancel context.CancelFunc
	done   chan error

	mu      sync.Mutex
	changes []local.Change
	more    chan struct{}
}

// start runs the manifests with a short crash-loop delay, until the test stops them or
// ends.
func start(t *testing.T, manifests string, edits ...func(*local.Options)) *bench {
	t.Helper()
	objects, err := manifest.Read(t.Context(), []manifest.Source{{Name: "test.yaml", Reader: strings.NewReader(manifests)}}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{t: t, cancel: cancel, done: make(chan error, 1), more: make(chan struct{}, 1)}
	options := local.Options{
		Objects: objects, Version: "test", Observe: b.observe,
		CrashLoopInitial: 100 * time.Millisecond, CrashLoopMax: time.Second,
	}
	for _, edit := range edits {
		edit(&options)
	}
	if b.Runner, err = local.New(options); err != nil {
		t.Fatal(err)
	}
	go func() { b.done <- b.Run(ctx) }()
	t.Cleanup(func() {
		b.Kill()
		b.stop()
		if t.Failed() {
			for _, line := range b.lines() {
				t.Log(line)
			}
		}
	})
	return b
}

// stop ends the run and waits until it has ended. It may be called again.
func (b *bench) stop() {
	b.cancel()
	select {
	case err := <-b.done:
		if err != nil {
			b.t.Errorf("the run ended with: %v", err)
		}
		b.done <- nil
	case <-time.After(patience):
		b.t.Fatal("the run does not end")
	}
}

func (b *bench) observe(change local.Change) {
	b.mu.Lock()
	b.changes = append(b.changes, change)
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// lines returns the changes, one a line, as tests speak of them.
func (b *bench) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := make([]string, 0, len(b.changes))
	for _, change := range b.changes {
		lines = append(lines, line(change))
	}
	return lines
}

// await waits for changes that begin with the words given, in their order.
func (b *bench) await(wanted ...string) {
	b.t.Helper()
	deadline := time.After(patience)
	for {
		missing := wanted
		for _, got := range b.lines() {
			if len(missing) > 0 && strings.HasPrefix(got, missing[0]) {
				missing = missing[1:]
			}
		}
		if len(missing) == 0 {
			return
		}
		select {
		case <-b.more:
		case <-deadline:
			b.t.Fatalf("no change %q", missing[0])
		}
	}
}

// count returns how many changes begin with the words.
func (b *bench) count(words string) int {
	n := 0
	for _, got := range b.lines() {
		if strings.HasPrefix(got, words) {
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
	return "nothing"
}

// write puts a file where a container's script looks for it.
func write(t *testing.T, path, contents string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}
