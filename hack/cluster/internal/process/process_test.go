// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestParseStat(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"
	tests := map[string]struct {
		text  string
		state string
		start uint64
		fails bool
	}{
		"plain":                  {text: "7 (sh) S" + rest, state: "S", start: 4242},
		"spaces and parentheses": {text: "7 (a) R 1 (b c) Z" + rest, state: "Z", start: 4242},
		"truncated":              {text: "7 (sh) S 1 2", fails: true},
		"no command":             {text: "7 sh S" + rest, fails: true},
		"empty":                  {text: "", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, start, err := parseStat(test.text)
			if (err != nil) != test.fails || state != test.state || start != test.start {
				t.Errorf("state %q, start %d, error %v", state, start, err)
			}
		})
	}
}

func self(t *testing.T) Record {
	t.Helper()
	return recordOf(t, os.Getpid())
}

func recordOf(t *testing.T, pid int) Record {
	t.Helper()
	boot, err := BootID()
	expect.NoError(t, err)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	expect.NoError(t, err)
	_, start, err := parseStat(string(text))
	expect.NoError(t, err)
	return Record{Name: "self", PID: pid, Start: start, Boot: boot}
}

func TestAliveIdentifiesTheProcess(t *testing.T) {
	tests := map[string]struct {
		change func(*Record)
		want   bool
	}{
		"same process":      {change: func(*Record) {}, want: true},
		"reused process ID": {change: func(r *Record) { r.Start++ }},
		"earlier boot":      {change: func(r *Record) { r.Boot = "another" }},
		"no such process":   {change: func(r *Record) { r.PID = 1 << 30 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			record := self(t)
			test.change(&record)
			if got := record.Alive(); got != test.want {
				t.Errorf("alive: %t", got)
			}
		})
	}
}

// TestAliveWhileAThreadExecutes starts this test program as a process that repeatedly executes a program from a
// thread other than its first.
func TestAliveWhileAThreadExecutes(t *testing.T) {
	if left, err := strconv.Atoi(os.Getenv("EXECUTIONS_LEFT")); err == nil {
		executeFromAnotherThread(t, left)
		return
	}
	self, err := os.Executable()
	expect.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAliveWhileAThreadExecutes$")
	cmd.Env = append(os.Environ(), "EXECUTIONS_LEFT=30")
	output, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	input, err := cmd.StdinPipe()
	expect.NoError(t, err)
	expect.NoError(t, cmd.Start())
	record := recordOf(t, cmd.Process.Pid)
	arrived := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(output, make([]byte, len(allExecuted)))
		arrived <- err
	}()
	for waiting := true; waiting; {
		if !record.Alive() {
			t.Error("Alive is false for a process that executes a program")
			waiting = false
		}
		select {
		case err := <-arrived:
			if err != nil {
				t.Errorf("the process has ended: %v", err)
			}
			waiting = false
		default:
		}
	}
	if err := input.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if record.Alive() {
		t.Error("Alive is true for the ended process")
	}
}

// allExecuted is the output of the process when it is done. It keeps running until its input ends.
const allExecuted = "all executed\n"

func executeFromAnotherThread(t *testing.T, left int) {
	if left == 0 {
		fmt.Print(allExecuted)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	t.Setenv("EXECUTIONS_LEFT", strconv.Itoa(left-1))
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}()
	t.Fatal(<-done)
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	want := self(t)
	expect.NoError(t, want.write(dir))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "incomplete.pid.json"), []byte("{"), 0o644))
	got, err := ReadRecords(dir)
	expect.NoError(t, err)
	if len(got) != 1 || got["self"] != want {
		t.Errorf("got %v", got)
	}
	none, err := ReadRecords(filepath.Join(dir, "missing"))
	if err != nil || len(none) != 0 {
		t.Errorf("a missing folder has %v, error %v", none, err)
	}
}

func TestDigestDependsOnInputs(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "config")
	write := func(text string) {
		expect.NoError(t, os.WriteFile(input, []byte(text), 0o644))
	}
	digest := func(spec Spec) string {
		text, err := spec.Digest()
		expect.NoError(t, err)
		return text
	}
	write("one")
	spec := Spec{Name: "d", Path: "/bin/sh", Args: []string{"-c", "true"}, Inputs: []string{input}}
	first := digest(spec)
	if digest(spec) != first {
		t.Error("the same spec has two digests")
	}
	write("two")
	if digest(spec) == first {
		t.Error("changed input does not change the digest")
	}
	write("one")
	spec.Args = append(spec.Args, "x")
	if digest(spec) == first {
		t.Error("changed arguments do not change the digest")
	}
	spec.Inputs = []string{input + ".missing"}
	if _, err := spec.Digest(); err == nil {
		t.Error("no error for a missing input")
	}
}

// newManager returns a manager whose launcher runs a shell script instead of the daemon.
func newManager(t *testing.T, script string) (*Manager, string) {
	t.Helper()
	dir := t.TempDir()
	manager, err := NewManager(filepath.Join(dir, "run"), filepath.Join(dir, "logs"), []string{"/bin/sh", "-c", script})
	expect.NoError(t, err)
	return manager, dir
}

func record(t *testing.T, manager *Manager, name string) Record {
	t.Helper()
	records, err := manager.Records()
	expect.NoError(t, err)
	return records[name]
}

func TestEnsureAndStop(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := t.Context()
	// The shell prints its first argument, the spec, and becomes the daemon.
	manager, dir := newManager(t, `echo "$0"; exec sleep 1000`)
	spec := Spec{Name: "daemon", Path: "/bin/sh", Args: []string{"first"}}
	ensure := func(want bool) {
		t.Helper()
		started, err := manager.Ensure(ctx, spec)
		if err != nil || started != want {
			t.Fatalf("started %t, error %v", started, err)
		}
	}
	ensure(true)
	log := filepath.Join(dir, "logs", "daemon.log")
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		text, err := os.ReadFile(log)
		return strings.Contains(string(text), `"first"`), err
	})
	if err != nil {
		t.Errorf("the log does not contain the spec that the launcher prints: %v", err)
	}
	first := record(t, manager, "daemon")
	ensure(false)
	if again := record(t, manager, "daemon"); again != first || !first.Alive() {
		t.Errorf("record %v, then %v", first, again)
	}
	if session, err := syscall.Getpgid(first.PID); err != nil || session != first.PID {
		t.Errorf("the daemon is in group %d, error %v", session, err)
	}

	spec.Args = []string{"second"}
	ensure(true)
	second := record(t, manager, "daemon")
	if first.Alive() || !second.Alive() {
		t.Error("the outdated daemon was not replaced")
	}
	expect.NoError(t, manager.Stop(ctx, "daemon"))
	if second.Alive() || record(t, manager, "daemon") != (Record{}) {
		t.Error("the stopped daemon has a record")
	}
	if err := manager.Stop(ctx, "daemon"); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
}

func TestEndedReturnsKilledDaemon(t *testing.T) {
	defer goleak.VerifyNone(t)
	manager, _ := newManager(t, "exec sleep 1000")
	if _, err := manager.Ensure(t.Context(), Spec{Name: "daemon", Path: "/bin/sh"}); err != nil {
		t.Fatal(err)
	}
	if name, err := manager.Ended(); name != "" || err != nil {
		t.Errorf("ended: %q, error %v", name, err)
	}
	pid := record(t, manager, "daemon").PID
	expect.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) {
			name, err := manager.Ended()
			return name == "daemon", err
		})
	if err != nil {
		t.Errorf("Ended did not return the killed daemon: %v", err)
	}
	started, err := manager.Ensure(t.Context(), Spec{Name: "daemon", Path: "/bin/sh"})
	if err != nil || !started {
		t.Errorf("started %t, error %v", started, err)
	}
	if err := manager.Stop(t.Context(), "daemon"); err != nil {
		t.Error(err)
	}
}

func TestStopIgnoresProcessWithReusedID(t *testing.T) {
	manager, dir := newManager(t, "true")
	other := self(t)
	other.Name = "daemon"
	other.Start++
	expect.NoError(t, other.write(filepath.Join(dir, "run")))
	// The record has the ID of the test process: a signal would end the test.
	if err := manager.Stop(t.Context(), "daemon"); err != nil {
		t.Error(err)
	}
}
