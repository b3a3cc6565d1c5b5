// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/local/process/processtest"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) {
	process.Reaper()
	goleak.VerifyTestMain(m)
}

func keeper(t *testing.T) *process.Keeper {
	t.Helper()
	k, err := process.NewKeeper("")
	expect.NoError(t, err)
	t.Cleanup(func() {
		expect.Success(t, k.Close())
	})
	return k
}

// run starts a script and returns its process and its output.
func run(t *testing.T, k *process.Keeper, script string, edits ...func(*process.Spec)) (*process.Process, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	spec := process.Spec{
		Command: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Set: t.Name(), Leads: true,
		Stdout: &stdout, Stderr: &stderr,
	}
	for _, edit := range edits {
		edit(&spec)
	}
	p, err := k.Start(spec)
	expect.NoError(t, err)
	return p, &stdout, &stderr
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(processtest.Patience):
		t.Fatalf("not closed within %s", processtest.Patience)
	}
}

// wantEnded checks that processes have ended.
func wantEnded(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if processtest.Running(pid) {
			t.Errorf("process %d is still running", pid)
		}
	}
}

func TestExits(t *testing.T) {
	k := keeper(t)
	for name, test := range map[string]struct {
		script string
		want   process.Exit
	}{
		"success":         {"exit 0", process.Exit{}},
		"failure":         {"exit 3", process.Exit{Code: 3}},
		"ended by signal": {"kill -TERM $$", process.Exit{Code: 143, Signal: 15}},
		"killed":          {"kill -KILL $$", process.Exit{Code: 137, Signal: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			p, _, _ := run(t, k, test.script)
			await(t, p.Done())
			got := p.Exit()
			if got.At.Before(before) || got.At.After(time.Now()) {
				t.Errorf("ended at %s", got.At)
			}
			got.At = time.Time{}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// A scan waits for the children of the program that have ended, except for those that a Process
// waits for.
func TestExitsDuringScans(t *testing.T) {
	k := keeper(t)
	ended := make(chan struct{})
	var scans sync.WaitGroup
	defer scans.Wait()
	defer close(ended)
	scans.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				k.Sets()
			}
		}
	})
	for range 200 {
		p, _, _ := run(t, k, "exit 3", func(spec *process.Spec) { spec.Leads = false })
		await(t, p.Done())
		if got := p.Exit().Code; got != 3 {
			t.Fatalf("got exit code %d, want 3", got)
		}
	}
}

func TestDoneMeansAllOutputIsWritten(t *testing.T) {
	k := keeper(t)
	p, stdout, stderr := run(t, k, "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo no newline >&2; printf end")
	await(t, p.Done())
	if got := strings.Count(stdout.String(), "\n"); got != 2000 || !strings.HasSuffix(stdout.String(), "\nend") {
		t.Errorf("%d lines on stdout, want 2000 and a line without newline", got)
	}
	if stderr.String() != "no newline\n" {
		t.Errorf("stderr is %q", stderr)
	}
}

func TestProcessGetsOnlyItsEnvironmentAndDirectory(t *testing.T) {
	k := keeper(t)
	t.Setenv("SECRET_OF_THIS_PROGRAM", "x")
	folder := t.TempDir()
	p, stdout, _ := run(t, k, `echo "$A"; pwd; echo "[$SECRET_OF_THIS_PROGRAM]"`, func(s *process.Spec) {
		s.Env, s.Dir = append(s.Env, "A=a"), folder
	})
	await(t, p.Done())
	if want := "a\n" + folder + "\n[]\n"; stdout.String() != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
}

func TestStartErrors(t *testing.T) {
	k := keeper(t)
	script := filepath.Join(t.TempDir(), "script")
	expect.NoError(t, os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o700))
	for name, test := range map[string]struct {
		edit func(*process.Spec)
		want string
	}{
		"no command":          {func(s *process.Spec) { s.Command = nil }, "no command"},
		"not in PATH":         {func(s *process.Spec) { s.Command = []string{"no-such"} }, "start no-such: no such program in PATH"},
		"no PATH":             {func(s *process.Spec) { s.Env = nil }, "start sh: no such program in PATH"},
		"no such file":        {func(s *process.Spec) { s.Command = []string{"/no/such"} }, "start /no/such: no such file or directory"},
		"no such folder":      {func(s *process.Spec) { s.Dir = "/no/such" }, "start sh: working directory /no/such: no such file or directory"},
		"file as folder":      {func(s *process.Spec) { s.Dir = script }, "start sh: working directory " + script + ": not a directory"},
		"no such interpreter": {func(s *process.Spec) { s.Command = []string{script} }, "start " + script + ": no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := process.Spec{
				Command: []string{"sh"}, Env: []string{"PATH=/usr/bin:/bin"}, Set: "x",
				Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
			}
			test.edit(&spec)
			_, err := k.Start(spec)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	k := keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	p, _, _ := run(t, k, "sleep 1000 & echo $! >"+file+"; exit 0", func(s *process.Spec) { s.Leads = false })
	await(t, p.Done())
	wantEnded(t, processtest.PID(t, file))
}

func TestTerminateReachesTheGroup(t *testing.T) {
	k := keeper(t)
	folder := t.TempDir()
	ready, signalled := filepath.Join(folder, "ready"), filepath.Join(folder, "signalled")
	// The file ready is written last, when both shells have set their traps.
	p, _, _ := run(t, k, `trap "wait; exit 5" TERM
		sh -c 'trap "echo 1 >`+signalled+`; exit" TERM; echo 1 >`+ready+`; while true; do sleep 0.05; done' &
		while true; do sleep 0.05; done`)
	processtest.PID(t, ready)
	p.Terminate()
	await(t, p.Done())
	expect.Equal(t, "exit code", 5, p.Exit().Code)
	processtest.PID(t, signalled)
	// Signals to a process that has ended do nothing.
	p.Terminate()
	p.Kill()
}

func TestCloseKillsAllProcesses(t *testing.T) {
	k := keeper(t)
	folder := t.TempDir()
	leader, daemon := filepath.Join(folder, "leader"), filepath.Join(folder, "daemon")
	p, _, _ := run(t, k, `trap "" TERM HUP; echo $$ >`+leader+`
		setsid sh -c 'echo $$ >`+daemon+`; exec sleep 1000' & while true; do sleep 0.05; done`)
	pids := []int{processtest.PID(t, leader), processtest.PID(t, daemon)}
	expect.NoError(t, os.WriteFile(filepath.Join(k.Folder(), "file"), nil, 0o600))
	expect.NoError(t, k.Close())
	await(t, p.Done())
	wantEnded(t, pids...)
	if _, err := os.Stat(k.Folder()); !os.IsNotExist(err) {
		t.Errorf("folder was not removed: %v", err)
	}
	if _, err := k.Start(process.Spec{Command: []string{"/bin/true"}, Set: "x", Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}); err == nil {
		t.Error("closed keeper started a process")
	}
}

func TestLostReportsKilledReaper(t *testing.T) {
	k := keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	p, _, _ := run(t, k, "echo $$ >"+file+"; exec sleep 1000")
	number, reaper := processtest.PID(t, file), 0
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	expect.NoError(t, err)
	for _, entry := range entries {
		command, err := os.ReadFile(entry)
		if err == nil && strings.HasSuffix(string(command), "\x00"+k.Folder()+"\x00") {
			reaper, _ = strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		}
	}
	if reaper == 0 {
		t.Fatal("reaper not found")
	}
	expect.NoError(t, syscall.Kill(reaper, syscall.SIGKILL))
	await(t, k.Lost())
	expect.NoError(t, k.Close())
	await(t, p.Done())
	wantEnded(t, number)
	if _, err := os.Stat(k.Folder()); !os.IsNotExist(err) {
		t.Errorf("folder was not removed: %v", err)
	}
}

// escape starts a process that leaves the group, the session and the environment of its
// parent, and writes its PID to a file.
func escape(file string) string {
	return `env -i setsid sh -c 'echo $$ >` + file + `; exec sleep 1000' & `
}

func TestEscapedProcessEndsWithItsSet(t *testing.T) {
	k := keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	p, _, _ := run(t, k, escape(file)+"sleep 1; exit 0")
	pid := processtest.PID(t, file)
	await(t, p.Done())
	wantEnded(t, pid)
}

func TestProcessesOfAnotherKeeperAreNotKilled(t *testing.T) {
	first, second := keeper(t), keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	run(t, second, escape(file)+"exec sleep 1000")
	pid := processtest.PID(t, file)
	<-time.After(200 * time.Millisecond)
	expect.NoError(t, first.Close())
	if !processtest.Running(pid) {
		t.Errorf("process %d was killed", pid)
	}
	expect.NoError(t, second.Close())
	wantEnded(t, pid)
}

func TestEscapedCommandEndsWithItsSet(t *testing.T) {
	k := keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	leader, _, _ := run(t, k, "sleep 1000")
	command, _, _ := run(t, k, "echo $$ >"+file+"; exec env -i sleep 1000", func(s *process.Spec) { s.Leads = false })
	pid := processtest.PID(t, file)
	leader.Kill()
	await(t, leader.Done())
	await(t, command.Done())
	wantEnded(t, pid)
}

func TestOrphansDoNotRemainZombies(t *testing.T) {
	k := keeper(t)
	file := filepath.Join(t.TempDir(), "pid")
	run(t, k, "(sh -c 'echo $$ >"+file+"; exec sleep 0.2' &); exec sleep 1000")
	stat := filepath.Join("/proc", strconv.Itoa(processtest.PID(t, file)))
	processtest.Eventually(t, "the orphan is waited for", func() bool {
		_, err := os.Stat(stat)
		return os.IsNotExist(err)
	})
}
