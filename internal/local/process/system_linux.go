// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose parent ends. It fails
// only on a kernel without this feature.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

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

// descendants returns the descendants of a process, parents before their children.
func descendants(root int) []proc {
	listed := childrenOf
	if _, err := os.Stat("/proc/thread-self/children"); errors.Is(err, fs.ErrNotExist) {
		listed = childrenByParent()
	}
	var found []proc
	seen := map[int]bool{}
	// While a listing is made, the children of a process that ends become those of the root.
	for complete := false; !complete; {
		complete = true
		for pending := []int{root}; len(pending) > 0; pending = pending[1:] {
			for _, pid := range listed(pending[0]) {
				if p, ok := stat(pid); ok && !seen[pid] {
					seen[pid], complete = true, false
					found = append(found, p)
					pending = append(pending, pid)
				}
			}
		}
	}
	return found
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) []int {
	// The pattern is valid.
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(content) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// childrenByParent returns childrenOf for a kernel that does not list children.
func childrenByParent() func(pid int) []int {
	children := map[int][]int{}
	// Without /proc there are none.
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := stat(pid); ok {
				children[p.parent] = append(children[p.parent], pid)
			}
		}
	}
	return func(pid int) []int { return children[pid] }
}

// stat returns a process. It returns false if there is none.
func stat(pid int) (proc, bool) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return proc{}, false
	}
	// The fields after the program's name in parentheses are the state, the parent, the
	// group and others. The name can contain parentheses and spaces.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	const state, parent, group, start = 0, 1, 2, 19
	if len(fields) <= start {
		return proc{}, false
	}
	p := proc{pid: pid, zombie: bytes.ContainsAny(fields[state], "ZX")}
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(string(fields[parent]))
	p.group, errs[1] = strconv.Atoi(string(fields[group]))
	p.start, errs[2] = strconv.ParseUint(string(fields[start]), 10, 64)
	return p, errors.Join(errs[:]...) == nil
}
