// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/chaos/programs"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestAKilledProgramStartsAgain(t *testing.T) {
	t.Parallel()
	program, err := programs.Start(programs.Spec{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}, Log: filepath.Join(t.TempDir(), "log")})
	expect.NoError(t, err)
	first := program.PID()
	changed := program.Spec
	changed.Cgroup = t.TempDir()
	program.Use(changed)
	expect.NoError(t, program.Signal(syscall.SIGKILL))
	await.Until(t, "a second start", func(context.Context) (string, error) {
		if n := program.Starts(); n != 2 {
			return fmt.Sprint(n, " starts"), nil
		}
		return "", nil
	})
	if program.PID() == first {
		t.Error("the killed process still runs")
	}
	await.Until(t, "the ID of the second process in its cgroup", func(context.Context) (string, error) {
		joined, err := os.ReadFile(filepath.Join(changed.Cgroup, "cgroup.procs"))
		if got, want := strings.TrimSpace(string(joined)), fmt.Sprint(program.PID()); got != want {
			return fmt.Sprintf("%q, want %s: %v", got, want, err), nil
		}
		return "", nil
	})
	expect.NoError(t, program.Signal(syscall.SIGSTOP))
	// A stopped program ends, too, and it does not start again.
	program.Close(t.Context())
	expect.Equal(t, "starts after Close", 2, program.Starts())
}

func TestStartNamesAMissingProgram(t *testing.T) {
	t.Parallel()
	if _, err := programs.Start(programs.Spec{Name: "none", Path: "/none", Log: filepath.Join(t.TempDir(), "log")}); err == nil {
		t.Error("no error for a program that does not exist")
	}
}
