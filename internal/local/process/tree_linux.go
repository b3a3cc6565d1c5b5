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

// ownGroupID returns the process group of this process.
func ownGroupID() int { return unix.Getpgrp() }

// waitFor frees the PID of a child that has ended.
func waitFor(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }

// descendants returns the descendants of a process, parents before their children.
func descendants(root int) []proc {
	if _, err := os.Stat("/proc/thread-self/children"); errors.Is(err, fs.ErrNotExist) {
		return descendantsByParent(root)
	}
	var found []proc
	for pending := []int{root}; len(pending) > 0; pending = pending[1:] {
		for _, pid := range children(pending[0]) {
			if p, ok := stat(pid); ok {
				found = append(found, p)
				pending = append(pending, pid)
			}
		}
	}
	return found
}

// children returns the children of all threads of a process.
func children(pid int) []int {
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

// descendantsByParent finds the descendants on a kernel that does not list children.
func descendantsByParent(root int) []proc {
	byParent := map[int][]proc{}
	for _, pid := range processIDs() {
		if p, ok := stat(pid); ok {
			byParent[p.parent] = append(byParent[p.parent], p)
		}
	}
	found := byParent[root]
	for i := 0; i < len(found); i++ {
		found = append(found, byParent[found[i].pid]...)
	}
	return found
}

// processIDs returns the PIDs of all processes.
func processIDs() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stat returns a process. It returns false if there is none.
func stat(pid int) (proc, bool) {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, content)
}

// parseStat parses the contents of /proc/PID/stat.
func parseStat(pid int, content []byte) (proc, bool) {
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

// relationOf returns what the environment and the command line of a process say about the
// run with the folder, and the set in its environment.
func relationOf(pid int, folder string) (relation, string) {
	path := filepath.Join("/proc", strconv.Itoa(pid))
	environment, err := os.ReadFile(filepath.Join(path, "environ"))
	if err != nil {
		return otherRun, ""
	}
	if set := setOf(pid, folder); set != "" {
		return sameRun, set
	}
	command, err := os.ReadFile(filepath.Join(path, "cmdline"))
	if err != nil || bytes.Contains(environment, []byte(runVariable+"=")) || bytes.Contains(command, []byte(reaperArgument)) {
		return otherRun, ""
	}
	return unrelated, ""
}

// setOf returns the set in the environment of a process of the run with the folder.
func setOf(pid int, folder string) string {
	// The environment of a process that has ended or belongs to another user is empty.
	environment, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if !has(environment, []byte(runVariable+"="+folder)) {
		return ""
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if set, found := bytes.CutPrefix(variable, []byte(setVariable+"=")); found {
			return string(set)
		}
	}
	return ""
}
