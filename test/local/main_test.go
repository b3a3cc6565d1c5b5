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
)

// examples is the folder of the manifests, from this package's.
const examples = "../../examples/"

// parallel is how many runs go on at a time. They wait most of theirs.
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

// testMain builds the programs, and puts them first in the PATH.
func testMain(m *testing.M) (int, error) {
	if err := flag.Set("test.parallel", parallel); err != nil {
		return 0, fmt.Errorf("set the number of parallel tests: %w", err)
	}
	bin, err := os.MkdirTemp("", "seamark-test-")
	if err != nil {
		return 0, fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer os.RemoveAll(bin)
	for name, source := range map[string]string{"seamark": "../../cmd/seamark", "example-server": examples + "server"} {
		out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), source).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return 0, fmt.Errorf("set PATH: %w", err)
	}
	return m.Run(), nil
}

// record is one line of the JSON output, as far as the tests read it.
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

// result is a run that has ended.
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

// beforeStop is the run without its end, in which pods are stopped and so not ready.
func (r result) beforeStop() result {
	for i, one := range r.records {
		if one.Event != nil && one.Event.Reason == "Killing" && strings.HasPrefix(one.Event.Message, "Stopping") {
			r.records = r.records[:i]
			break
		}
	}
	return r
}

// runs are the runs of a probe, by the restart count of their container.
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

// count counts the runs with a result.
func count(runs []record, result string) int {
	n := 0
	for _, one := range runs {
		if one.Probe.Result == result {
			n++
		}
	}
	return n
}

// restarts is how often the container was restarted, and the exit code of each end.
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

// events are the messages of a pod's events of a reason; an empty pod is any.
func (r result) events(pod, reason string) []string {
	var out []string
	for _, one := range r.records {
		if one.Event != nil && one.Event.Reason == reason && (pod == "" || one.Pod == pod) {
			out = append(out, one.Event.Message)
		}
	}
	return out
}

// conditions are the statuses that a pod's condition went through.
func (r result) conditions(pod, kind string) []string {
	var out []string
	for _, one := range r.records {
		if one.Condition == nil || one.Pod != pod || one.Condition.Type != kind {
			continue
		}
		status := one.Condition.Status
		if one.Removed {
			status = "gone"
		}
		if len(out) == 0 || out[len(out)-1] != status {
			out = append(out, status)
		}
	}
	return out
}

// labels are the values that a pod's label went through; "gone" where it was removed.
func (r result) labels(pod, key string) []string { return r.values("Label", pod, key) }

// annotations are those of an annotation.
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
			value = "gone"
		}
		out = append(out, value)
	}
	return out
}
