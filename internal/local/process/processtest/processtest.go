// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processtest helps tests observe the processes that they start. It needs /proc.
package processtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Patience limits each wait of a test. Only a test that fails reaches it.
	Patience = 20 * time.Second

	interval = 10 * time.Millisecond
)

// Eventually waits until the condition is true. It fails the test with the description if
// that takes too long.
func Eventually(t *testing.T, description string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), interval, Patience, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", description, err)
	}
}

// Running reports whether a process runs. A zombie does not.
func Running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// PIDs waits until the folder has n files in which scripts have written their PIDs, and
// returns the PIDs.
func PIDs(t *testing.T, folder string, n int) []int {
	t.Helper()
	var pids []int
	Eventually(t, fmt.Sprintf("%d PIDs in %s", n, folder), func() bool {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		pids = nil
		for _, file := range files {
			if pid, ok := readPID(filepath.Join(folder, file.Name())); ok {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

// PID waits until a script has written its PID to a file, and returns it.
func PID(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	Eventually(t, "PID in "+file, func() bool {
		var ok bool
		pid, ok = readPID(file)
		return ok
	})
	return pid
}

func readPID(file string) (int, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, err == nil
}
