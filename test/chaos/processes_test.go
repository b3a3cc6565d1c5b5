// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/test/chaos/clock"
	"github.com/seamark-dev/seamark/test/chaos/programs"
)

// restart sends a signal that ends processes, which start again as changed from how they started at first.
func restart(all []*programs.Program, by syscall.Signal, change func(*programs.Spec)) error {
	for _, program := range all {
		spec := program.Spec
		change(&spec)
		program.Use(spec)
	}
	return signal(all, by)
}

func unchanged(*programs.Spec) {}

// restarted are programs that are started differently for a while.
func (w *world) restarted() map[string]fault {
	return map[string]fault{
		// Writes to the log fail, as they do on a full disk. Nothing else of a program writes to a disk.
		"agent's log full": {
			least: 4 * time.Second, most: 8 * time.Second, api: true,
			inject: func(context.Context, *rand.Rand) error {
				return restart(w.of(agentName), syscall.SIGKILL, func(s *programs.Spec) { s.Log = "/dev/full" })
			},
			heal: func(context.Context) error { return restart(w.of(agentName), syscall.SIGKILL, unchanged) },
		},
	}
}

// clocks are the clocks of programs, which are set forward or back by an hour, and corrected.
func (w *world) clocks() map[string]fault {
	all := map[string]fault{}
	if os.Getenv(clockVariable) == "" {
		return all
	}
	for short, name := range names() {
		var stepped []*programs.Program
		all["clock of the "+short+" stepped"] = fault{
			least: 10 * time.Second, most: 30 * time.Second, api: true,
			inject: func(_ context.Context, random *rand.Rand) error {
				stepped = w.some(random, name)
				return step(stepped, []time.Duration{time.Hour, -time.Hour}[random.IntN(2)])
			},
			heal: func(context.Context) error { return step(stepped, 0) },
		}
	}
	return all
}

func step(all []*programs.Program, after time.Duration) error {
	for _, program := range all {
		if err := clock.Set(program.PID(), after); err != nil {
			return fmt.Errorf("%s: %w", program.Name, err)
		}
	}
	return nil
}

// leastMemory and mostMemory bound the limits of memory, in percent of what a process uses before.
const leastMemory, mostMemory = 30, 60

// memoryGroup is a cgroup with a limit of memory. limit and events are the names of its files.
type memoryGroup struct{ folder, limit, events string }

// limitMemory creates a cgroup for a process, with the controllers of version 1 or 2.
func limitMemory(ctx context.Context, program *programs.Program, percent uint64) (memoryGroup, error) {
	const root = "/sys/fs/cgroup"
	name := "seamark-chaos-" + program.Name
	group := memoryGroup{filepath.Join(root, "memory", name), "memory.limit_in_bytes", "memory.oom_control"}
	if _, err := os.Stat(filepath.Dir(group.folder)); err != nil {
		group = memoryGroup{filepath.Join(root, name), "memory.max", "memory.events"}
	}
	if err := os.Mkdir(group.folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return group, fmt.Errorf("create a cgroup: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(group.folder, group.limit), os.O_WRONLY, 0)
	if err != nil {
		return group, fmt.Errorf("limit memory: %s has no memory controller for its cgroups: %w", root, err)
	}
	defer func() { _ = file.Close() }()
	sample, err := program.Sample(ctx)
	if err != nil {
		return group, fmt.Errorf("limit memory: %w", err)
	}
	if _, err := fmt.Fprint(file, sample.Anonymous*percent/100); err != nil {
		return group, fmt.Errorf("limit memory: %w", err)
	}
	return group, nil
}

// remove removes the cgroup when its processes have ended, and reports whether the limit was reached.
func (g memoryGroup) remove(ctx context.Context) (reached bool, err error) {
	text, err := os.ReadFile(filepath.Join(g.folder, g.events))
	if err != nil {
		return false, fmt.Errorf("read the events of a cgroup: %w", err)
	}
	return !strings.Contains(string(text), "oom_kill 0\n"),
		poll(ctx, time.Minute, func(context.Context) bool { return syscall.Rmdir(g.folder) == nil })
}

// limited are programs that may use less memory than they need: the kernel kills them again and again.
func (w *world) limited() map[string]fault {
	all := map[string]fault{}
	for short, name := range names() {
		var limited []*programs.Program
		var groups []memoryGroup
		all["memory limit of the "+short] = fault{
			least: 8 * time.Second, most: 20 * time.Second, api: true,
			inject: func(ctx context.Context, random *rand.Rand) error {
				limited, groups = w.some(random, name), nil
				percent := leastMemory + random.Uint64N(mostMemory-leastMemory)
				for _, program := range limited {
					group, err := limitMemory(ctx, program, percent)
					if err != nil {
						return err
					}
					groups = append(groups, group)
					if err := restart([]*programs.Program{program}, syscall.SIGKILL, func(s *programs.Spec) { s.Cgroup = group.folder }); err != nil {
						return err
					}
				}
				return nil
			},
			heal: func(ctx context.Context) error {
				killed, errs := false, []error{restart(limited, syscall.SIGKILL, unchanged)}
				for _, group := range groups {
					// A replica that does not lead may need less than the limit.
					reached, err := group.remove(ctx)
					killed, errs = killed || reached, append(errs, err)
				}
				if !killed {
					errs = append(errs, fmt.Errorf("the kernel has killed no process of %v", groups))
				}
				return errors.Join(errs...)
			},
		}
	}
	return all
}
