// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/vishvananda/netns"
)

// joiner moves the calling process into the cgroup of a daemon.
type joiner interface {
	Join(path string) error
}

// CgroupOf returns the path of a daemon's cgroup in the cluster's tree.
func CgroupOf(name string) string { return "system/" + name }

// Launch replaces the calling process by the daemon of an encoded Spec: it joins the cgroup and the network
// namespace and executes the program. The process ID stays the same. Launch returns only on error.
func Launch(encoded string, cgroups joiner) error {
	var spec Spec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		return fmt.Errorf("decode the command to launch: %w", err)
	}
	if err := cgroups.Join(CgroupOf(spec.Name)); err != nil {
		return err
	}
	if spec.NetNS != "" {
		// A network namespace applies to a thread: the same thread must enter it and execute the program.
		runtime.LockOSThread()
		handle, err := netns.GetFromPath(spec.NetNS)
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", spec.NetNS, err)
		}
		if err := netns.Set(handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", spec.NetNS, err)
		}
	}
	if _, err := fmt.Fprintf(os.Stderr, "starting %s %q\n", spec.Path, spec.Args); err != nil {
		return fmt.Errorf("write to the log: %w", err)
	}
	if err := syscall.Exec(spec.Path, append([]string{spec.Path}, spec.Args...), spec.Env); err != nil {
		return fmt.Errorf("execute %s: %w", spec.Path, err)
	}
	return nil
}
