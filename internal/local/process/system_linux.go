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
		// The fields after the program's name in parentheses are state, parent and group.
		_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
		fields := bytes.Fields(after)
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}

// carriers returns the processes that were started with the variable, given as name=value,
// in their environment. It skips processes of other users, whose environment can't be
// read, and zombies, which have none.
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

// has reports whether an environment in the format of /proc has the variable.
func has(environment, variable []byte) bool {
	for line := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(line, variable) {
			return true
		}
	}
	return false
}
