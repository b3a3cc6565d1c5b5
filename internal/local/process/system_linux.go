// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a child has exited, without reaping it. It returns false if it
// could not wait.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// groupRuns reports whether a group has a running process. Zombies remain in their group
// but do not count.
func groupRuns(group int) bool {
	if errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
		return false
	}
	for _, pid := range processIDs() {
		if p, ok := stat(pid); ok && p.group == group && !p.zombie {
			return true
		}
	}
	return false
}

// carriers returns the processes that were started with the variable, given as name=value,
// in their environment. It skips processes of other users, whose environment can't be
// read, and zombies, which have none.
func carriers(variable string) []int {
	self, wanted := os.Getpid(), []byte(variable)
	var pids []int
	for _, pid := range processIDs() {
		if pid == self {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err == nil && has(environment, wanted) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has reports whether an environment in the format of /proc has the variable.
func has(environment, variable []byte) bool {
	for line := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(line, variable) {
			return true
		}
	}
	return false
}
