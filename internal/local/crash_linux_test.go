// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/internal/local/process/processtest"
	"github.com/seamark-dev/seamark/test/expect"
)

const hidingProcesses = 5

// hiding returns a pod that tries to leave processes behind: in the group of its container,
// in a separate session, also with an empty environment, and in a probe. Each process writes
// its PID to a file in the folder. A command in a manifest writes the shell's $$ as $$$$,
// because $$ stands for $.
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
      env -i setsid sh -c 'echo $$$$ >`+folder+`/escaped; exec sleep 1004' &
      while true; do sleep 0.1; done
    readinessProbe:
      timeoutSeconds: 60
      exec: {command: [sh, -c, 'echo $$$$ >`+folder+`/probe; sleep 1003']}
`)
}

// orphaning returns a pod whose containers end at once and leave a process behind that has
// escaped like that of hiding.
func orphaning(folder string) string {
	var containers strings.Builder
	for i := range hidingProcesses {
		file := fmt.Sprintf("%s/%d", folder, i)
		fmt.Fprintf(
			&containers,
			"  - name: c%d\n    command: [sh, -c, \"env -i setsid sh -c 'echo $$$$ >%s; exec sleep 1005' & while ! [ -s %s ]; do :; done; exit 0\"]\n",
			i, file, file,
		)
	}
	return pod("p", "\n  restartPolicy: Never\n  containers:\n  - {name: main, command: [sleep, '1006']}\n"+containers.String())
}

func TestNoProcessSurvivesCrash(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]func(folder string) string{"hiding": hiding, "orphaning": orphaning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkCrash(t, manifest)
		})
	}
}

// checkCrash runs a pod that writes PIDs to a folder, in another program, and kills it.
func checkCrash(t *testing.T, manifest func(folder string) string) {
	t.Helper()
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "pod.yaml")
	temp := t.TempDir()
	write(t, file, manifest(folder))
	crash := exec.Command(os.Args[0])
	crash.Env = append(os.Environ(), crashManifest+"="+file, "TMPDIR="+temp)
	crash.Stderr = os.Stderr
	expect.NoError(t, crash.Start())
	t.Cleanup(func() { _ = crash.Process.Kill() })
	pids := processtest.PIDs(t, folder, hidingProcesses)
	expect.NoError(t, crash.Process.Signal(syscall.SIGKILL))
	if err := crash.Wait(); err == nil {
		t.Fatal("the run was not killed")
	}
	for _, pid := range pids {
		processtest.Eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !processtest.Running(pid) })
	}
	processtest.Eventually(t, "the run's folder is removed", func() bool {
		left, err := os.ReadDir(temp)
		return err == nil && len(left) == 0
	})
}
