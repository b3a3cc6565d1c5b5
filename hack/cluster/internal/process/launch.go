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

// joiner puts the calling process into the cgroup of a daemon.
type joiner interface {
	Join(path string) error
}

// CgroupOf is the path of a daemon's cgroup within the cluster's tree.
func CgroupOf(name string) string { return "system/" + name }

// Launch turns the calling process into the daemon of an encoded Spec: it joins the cgroup and the
// network namespace, then executes the program. The process number stays. It returns only on error.
func Launch(encoded string, cgroups joiner) error {
	var spec Spec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		return fmt.Errorf("read the command to launch: %w", err)
	}
	if err := cgroups.Join(CgroupOf(spec.Name)); err != nil {
		return err
	}
	if spec.NetNS != "" {
		// A namespace belongs to a thread: the one that executes must be the one that entered.
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
