// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/manifest"
)

// crashManifest is the variable that makes this program run a manifest rather than tests.
const crashManifest = "LOCAL_TEST_CRASH_MANIFEST"

// runToCrash runs a manifest until it is killed.
func runToCrash(file string) {
	reader, err := os.Open(file)
	if err == nil {
		var objects manifest.Objects
		if objects, err = manifest.Read(context.Background(), []manifest.Source{{Name: file, Reader: reader}}, manifest.Options{}); err == nil {
			var runner *local.Runner
			if runner, err = local.New(local.Options{Objects: objects}); err == nil {
				err = runner.Run(context.Background())
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// alive tells whether a process runs. One that has ended and is not waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// pidsIn reads the process numbers that scripts have left in a folder.
func pidsIn(t *testing.T, folder string) []int {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// hiding is a container that tries to leave processes behind: in its group, and in a
// session of its own; its probe does so too. Each leaves its number in the folder. A
// manifest writes the shell's $$ as $$$$.
func hiding(folder string) string {
	return pod("p", `
  containers:
  - name: main
    command:
    - sh
    - -c
    - |
      trap "" TERM HUP INT
      echo $$$$ >`+folder+`/leader
      sleep 1001 & echo $! >`+folder+`/group
      setsid sh -c 'echo $$$$ >`+folder+`/session; exec sleep 1002' &
      while true; do sleep 0.1; done
    readinessProbe:
      timeoutSeconds: 60
      exec: {command: [sh, -c, 'echo $$$$ >`+folder+`/probe; sleep 1003']}
`)
}

func TestNothingOutlivesACrash(t *testing.T) {
	t.Parallel()
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "pod.yaml")
	temp := t.TempDir()
	write(t, file, hiding(folder))
	crash := exec.Command(os.Args[0])
	crash.Env = append(os.Environ(), crashManifest+"="+file, "TMPDIR="+temp)
	crash.Stderr = os.Stderr
	if err := crash.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crash.Process.Kill() })
	eventually(t, "the container's processes run", func() bool { return len(pidsIn(t, folder)) == 4 })
	pids := pidsIn(t, folder)
	if err := crash.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := crash.Wait(); err == nil {
		t.Fatal("the run was not killed")
	}
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
	}
	eventually(t, "the run's folder is removed", func() bool {
		left, err := os.ReadDir(temp)
		return err == nil && len(left) == 0
	})
}

func TestNothingOutlivesARun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := start(t, hiding(folder))
	eventually(t, "the container's processes run", func() bool { return len(pidsIn(t, folder)) == 4 })
	pids := pidsIn(t, folder)
	b.Kill()
	b.stop()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func TestNothingOutlivesAContainer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := start(t, strings.Replace(hiding(folder), "while true; do sleep 0.1; done", "sleep 2; exit 7", 1))
	eventually(t, "the container's processes run", func() bool { return len(pidsIn(t, folder)) == 4 })
	pids := pidsIn(t, folder)
	b.await("p/main container Terminated Error 7")
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}
