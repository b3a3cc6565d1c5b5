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

// awaitExit waits until a child has ended, and leaves it to be waited for. It reports
// false where it could not wait.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// groupRuns tells whether a group has a process that has not ended. What has ended, but is
// not waited for by its parent, is still in the group.
func groupRuns(group int) bool {
	if errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		// After the program's name in parentheses: state, parent, group.
		_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
		fields := bytes.Fields(after)
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}

// carriers returns the processes that have the variable, given as name=value, in the
// environment that they were started with. Those of other users can't be read and are
// not ours. What has ended and is not yet waited for has no environment.
func carriers(variable string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self, wanted := os.Getpid(), []byte(variable)
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == self {
			continue
		}
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && has(environment, wanted) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has tells whether the variable is in an environment as /proc gives it.
func has(environment, variable []byte) bool {
	for line := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(line, variable) {
			return true
		}
	}
	return false
}
