// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/test/process"
)

// examples is the path of the examples, relative to this package.
const examples = "../../examples/"

// parallel is the number of parallel runs, which are idle most of the time.
const parallel = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testMain puts the built programs first in the PATH.
func testMain(m *testing.M) (int, error) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		return 0, fmt.Errorf("set test.parallel: %w", err)
	}
	var folder string
	for _, name := range []string{"seamark", "example-server", "example-database"} {
		program, err := process.Built(name, "test-local")
		if err != nil {
			return 0, err
		}
		folder = filepath.Dir(program)
	}
	if err := os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, fmt.Errorf("set PATH: %w", err)
	}
	return m.Run(), nil
}

// removed stands for the value of a condition, label or annotation after its removal.
const removed = "<removed>"

// record is one line of the JSON output, with the fields that the tests use.
type record struct {
	Kind      string
	Time      time.Time
	Pod       string
	Container string

	Phase           string
	ContainerStatus *struct {
		Ready, Started   bool
		RestartCount     int
		State, LastState corev1.ContainerState
	}
	Probe *struct {
		Type, Marker, Name, Handler, State, Message, Result, Output, Error string
		Transition, Ran                                                    bool
		Streak, Threshold, Runs                                            int
	}
	Condition         *struct{ Type, Status, Reason string }
	Label, Annotation *struct{ Key, Value string }
	Removed           bool
	Event             *struct{ Type, Reason, Message string }
}

type result struct {
	records []record
	stderr  string
	code    int
}

// seamark runs `seamark local -o json` with the arguments.
func seamark(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "seamark", append([]string{"local", "-o", "json"}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run seamark: %v", err)
	}
	r := result{stderr: stderr.String(), code: command.ProcessState.ExitCode()}
	for line := range strings.Lines(stdout.String()) {
		var one record
		decoder := json.NewDecoder(strings.NewReader(line))
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		r.records = append(r.records, one)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("exit code %d\n%s%s", r.code, stdout.String(), stderr.String())
		}
	})
	return r
}

// beforeStop removes the records from when the pods are stopped and no longer ready.
func (r result) beforeStop() result {
	for i, one := range r.records {
		if one.Event != nil && one.Event.Reason == "Killing" && strings.HasPrefix(one.Event.Message, "Stopping") {
			r.records = r.records[:i]
			break
		}
	}
	return r
}

// runs returns the runs of a probe by the restart count of its container.
func (r result) runs(kind, container string) map[int][]record {
	out, restarts := map[int][]record{}, 0
	for _, one := range r.records {
		switch {
		case one.Container != container:
		case one.ContainerStatus != nil:
			restarts = one.ContainerStatus.RestartCount
		case one.Probe != nil && one.Probe.Type == kind && one.Probe.Ran:
			out[restarts] = append(out[restarts], one)
		}
	}
	return out
}

func count(runs []record, result string) int {
	n := 0
	for _, one := range runs {
		if one.Probe.Result == result {
			n++
		}
	}
	return n
}

// restarts returns the number of restarts of the container and the exit code before each.
func (r result) restarts(container string) (restarts int, codes []int32) {
	for _, one := range r.records {
		if one.ContainerStatus == nil || one.Container != container || one.ContainerStatus.RestartCount <= restarts {
			continue
		}
		restarts = one.ContainerStatus.RestartCount
		if last := one.ContainerStatus.LastState.Terminated; last != nil {
			codes = append(codes, last.ExitCode)
		}
	}
	return restarts, codes
}

// events returns the messages of the pod's events with the reason. An empty pod matches all pods.
func (r result) events(pod, reason string) []string {
	var out []string
	for _, one := range r.records {
		if one.Event != nil && one.Event.Reason == reason && (pod == "" || one.Pod == pod) {
			out = append(out, one.Event.Message)
		}
	}
	return out
}

// conditions returns the successive statuses of a condition, or removed.
func (r result) conditions(pod, kind string) []string {
	var out []string
	for _, one := range r.records {
		if one.Condition == nil || one.Pod != pod || one.Condition.Type != kind {
			continue
		}
		status := one.Condition.Status
		if one.Removed {
			status = removed
		}
		if len(out) == 0 || out[len(out)-1] != status {
			out = append(out, status)
		}
	}
	return out
}

// labels returns the successive values of a label, or removed.
func (r result) labels(pod, key string) []string { return r.values("Label", pod, key) }

// annotations returns the successive values of an annotation, or removed.
func (r result) annotations(pod, key string) []string { return r.values("Annotation", pod, key) }

func (r result) values(kind, pod, key string) []string {
	var out []string
	for _, one := range r.records {
		pair := one.Label
		if kind == "Annotation" {
			pair = one.Annotation
		}
		if one.Kind != kind || one.Pod != pod || pair.Key != key {
			continue
		}
		value := pair.Value
		if one.Removed {
			value = removed
		}
		out = append(out, value)
	}
	return out
}
