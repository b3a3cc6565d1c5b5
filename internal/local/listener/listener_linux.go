// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// All returns all listeners.
func All() ([]Listener, error) {
	var all []Listener
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			// The system does not have this protocol.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list listeners: %w", err)
		}
		all = append(all, Parse(content)...)
	}
	return all, nil
}

// Owns reports whether a process has the listener open. It is not sure if the process can't
// be inspected.
func Owns(pid int, l Listener) (owns, sure bool) {
	folder := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, errors.Is(err, fs.ErrNotExist)
	}
	wanted := "socket:[" + l.Inode + "]"
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(folder, entry.Name())); err == nil && target == wanted {
			return true, true
		}
	}
	return false, true
}

// Owners returns the processes that have the listener open, as far as they can be seen.
func Owners(l Listener) []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var owners []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if owns, _ := Owns(pid, l); owns {
			// It is empty if the process has just ended.
			name, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
			owners = append(owners, Process{PID: pid, User: l.User, Name: strings.TrimSpace(string(name))})
		}
	}
	return owners
}
