// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup manages the cgroup that contains all processes of a cluster.
//
// All daemons and containers run in it, and a process cannot leave its cgroup by forking. The processes of a
// cluster are therefore exactly those in the cgroup. This applies to cgroup v1, to v2, and to both together.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// hierarchy is a mounted cgroup file system.
type hierarchy struct {
	mount   string
	unified bool
	cpuset  bool
}

// Tree is the subtree at one path of every hierarchy.
type Tree struct {
	hierarchies []hierarchy
	base        string
}

// NewTree finds the hierarchies in the text of a mountinfo file. base is the path of the tree in each
// of them, for example `/seamark`.
func NewTree(mountinfo, base string) (Tree, error) {
	tree := Tree{base: base}
	for line := range strings.Lines(mountinfo) {
		if found, ok := parseMount(line); ok {
			tree.hierarchies = append(tree.hierarchies, found)
		}
	}
	if len(tree.hierarchies) == 0 {
		return Tree{}, errors.New("find cgroups: no cgroup file system is mounted")
	}
	return tree, nil
}

// parseMount reads one line of mountinfo: fields, ` - `, then type, source and options of the super
// block (proc_pid_mountinfo(5)).
func parseMount(line string) (hierarchy, bool) {
	left, right, ok := strings.Cut(line, " - ")
	before, after := strings.Fields(left), strings.Fields(right)
	if !ok || len(before) < 5 || len(after) < 3 || before[3] != "/" {
		return hierarchy{}, false
	}
	switch after[0] {
	case "cgroup2":
		return hierarchy{mount: before[4], unified: true}, true
	case "cgroup":
		controllers := strings.Split(after[2], ",")
		return hierarchy{mount: before[4], cpuset: slices.Contains(controllers, "cpuset")}, true
	}
	return hierarchy{}, false
}

func (t Tree) dir(h hierarchy, path string) string { return filepath.Join(h.mount, t.base, path) }

// Path returns the path as the kubelet and runc use it.
func (t Tree) Path(path string) string { return filepath.Join(t.base, path) }

// Create creates path and its parents, so that processes or the kubelet can use it.
func (t Tree) Create(path string) error {
	for _, h := range t.hierarchies {
		current := h.mount
		for part := range strings.SplitSeq(strings.Trim(filepath.Join(t.base, path), "/"), "/") {
			next := filepath.Join(current, part)
			if err := h.createChild(current, next); err != nil {
				return fmt.Errorf("create cgroup %s: %w", next, err)
			}
			current = next
		}
	}
	return nil
}

func (h hierarchy) createChild(parent, child string) error {
	if h.unified {
		if err := delegate(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !h.cpuset {
		return nil
	}
	// A new v1 cpuset is empty and accepts no process until both are set.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// delegate enables all controllers of a v2 cgroup for its children.
func delegate(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0o644); err != nil {
			return fmt.Errorf("delegate %s: %w", name, err)
		}
	}
	return nil
}

// Join moves the calling process into path in every hierarchy.
func (t Tree) Join(path string) error {
	for _, h := range t.hierarchies {
		file := filepath.Join(t.dir(h, path), "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			return fmt.Errorf("join cgroup %s: %w", filepath.Dir(file), err)
		}
	}
	return nil
}

// Processes lists the processes in and below path, sorted.
func (t Tree) Processes(path string) ([]int, error) {
	var pids []int
	for _, h := range t.hierarchies {
		err := filepath.WalkDir(t.dir(h, path), func(dir string, entry fs.DirEntry, err error) error {
			if gone(err) {
				return nil
			}
			if err != nil || !entry.IsDir() {
				return err
			}
			found, err := readProcs(filepath.Join(dir, "cgroup.procs"))
			pids = append(pids, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list cgroup processes: %w", err)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func readProcs(file string) ([]int, error) {
	text, err := os.ReadFile(file)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Remove removes path and everything below it, and returns the number of removed cgroups. They must contain no
// processes.
func (t Tree) Remove(path string) (int, error) {
	removed := 0
	for _, h := range t.hierarchies {
		var dirs []string
		err := filepath.WalkDir(t.dir(h, path), func(dir string, entry fs.DirEntry, err error) error {
			if gone(err) {
				return nil
			}
			if err == nil && entry.IsDir() {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			return removed, fmt.Errorf("list cgroups: %w", err)
		}
		slices.Reverse(dirs)
		for _, dir := range dirs {
			if err := syscall.Rmdir(dir); err != nil && !gone(err) {
				return removed, fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
			removed++
		}
	}
	return removed, nil
}

// gone reports whether an error means that a cgroup was removed while it was read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
