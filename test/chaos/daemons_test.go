// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/chaos/clock"
	"github.com/seamark-dev/seamark/test/chaos/programs"
	"github.com/seamark-dev/seamark/test/process"
)

// daemon sends a signal to a daemon of the cluster, which its record identifies.
func (w *world) daemon(name string, signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(w.Dir, "run", name+".pid.json"))
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	var record struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(text, &record); err != nil || record.PID <= 1 {
		return fmt.Errorf("record of %s: process %d: %w", name, record.PID, err)
	}
	if err := syscall.Kill(record.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to %s: %w", signal, name, err)
	}
	return nil
}

// up starts the daemons of the cluster that do not run.
func (w *world) up(ctx context.Context) error { return w.upWith(ctx) }

// upWith does so with more variables in the environment, and restarts the daemons that they change.
func (w *world) upWith(ctx context.Context, variables ...string) error {
	built, err := process.Built("cluster", "chaos")
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	args := append(append([]string{"-C", "hack/cluster"}, variables...), built, "up", "--dir", w.Dir)
	if out, err := w.Run(ctx, "env", args...); err != nil {
		return fmt.Errorf("start the cluster: %w: %s", err, out)
	}
	return nil
}

// downs returns a fault that kills daemons until it ends.
func (w *world) downs(least, most time.Duration, api bool, daemons ...string) fault {
	return fault{
		least: least, most: most, api: api, heal: w.up,
		inject: func(context.Context, *rand.Rand) error {
			for _, name := range daemons {
				if err := w.daemon(name, syscall.SIGKILL); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// controlPlane are faults of etcd, the API server and what it calls.
func (w *world) controlPlane() map[string]fault {
	all := map[string]fault{
		"API server killed":          w.downs(4*time.Second, 20*time.Second, false, "kube-apiserver"),
		"etcd killed":                w.downs(4*time.Second, 20*time.Second, false, "etcd"),
		"etcd and API server killed": w.downs(4*time.Second, 8*time.Second, false, "etcd", "kube-apiserver"),
		"etcd out of space": {
			least: 8 * time.Second, most: 30 * time.Second,
			inject: func(ctx context.Context, _ *rand.Rand) error { return w.fillEtcd(ctx) },
			heal:   w.emptyEtcd,
		},
	}
	for name, mode := range map[string]func(context.Context){
		"webhook refuses": func(context.Context) {},
		"webhook hangs":   func(ctx context.Context) { <-ctx.Done() },
	} {
		var hook *webhook
		all[name] = fault{
			least: 10 * time.Second, most: 30 * time.Second, api: true,
			inject: func(ctx context.Context, _ *rand.Rand) (err error) { hook, err = w.hook(ctx, mode); return err },
			heal:   func(ctx context.Context) error { return hook.remove(ctx) },
		}
	}
	return all
}

// nodeFaults are faults of container runtimes, kubelets, nodes and their network.
func (w *world) nodeFaults() map[string]fault {
	all := map[string]fault{}
	// The second node of two is the victim, so that the first one can be compared with it.
	if len(w.nodes) == 0 {
		w.nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}
	}
	victim := w.nodes[len(w.nodes)-1].Name
	all["containerd killed"] = w.downs(6*time.Second, 20*time.Second, true, "containerd-"+victim)
	all["containerd stopped"] = fault{
		least: 6 * time.Second, most: 20 * time.Second, api: true,
		inject: func(context.Context, *rand.Rand) error { return w.daemon("containerd-"+victim, syscall.SIGSTOP) },
		heal:   func(context.Context) error { return w.daemon("containerd-"+victim, syscall.SIGCONT) },
	}
	all["containerd's socket removed"] = fault{
		least: 6 * time.Second, most: 12 * time.Second, api: true,
		inject: func(context.Context, *rand.Rand) error {
			err := os.Remove(filepath.Join(w.Dir, "nodes", victim, "containerd.sock"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove the socket: %w", err)
			}
			return nil
		},
		heal: func(ctx context.Context) error {
			return errors.Join(w.daemon("containerd-"+victim, syscall.SIGKILL), w.up(ctx))
		},
	}
	// A node is not ready 50 seconds after its last heartbeat.
	all["kubelet down, node not ready"] = w.downs(60*time.Second, 75*time.Second, true, "kubelet-"+victim)
	all["kubelet restarted"] = w.downs(4*time.Second, 10*time.Second, true, "kubelet-"+victim)
	link := "seamark-" + strings.TrimPrefix(victim, "node-")
	all["network of a node cut"] = fault{
		least: 20 * time.Second, most: 2 * time.Minute, api: true,
		inject: func(ctx context.Context, _ *rand.Rand) error {
			return w.command(ctx, "ip", "link", "set", link, "down")
		},
		heal: func(ctx context.Context) error { return w.command(ctx, "ip", "link", "set", link, "up") },
	}
	all["Node recreated"] = fault{
		least: 4 * time.Second, most: time.Minute, api: true,
		inject: func(ctx context.Context, _ *rand.Rand) error {
			w.ledger.Lose(victim)
			w.users.mayLose = true
			if err := w.daemon("kubelet-"+victim, syscall.SIGKILL); err != nil {
				return err
			}
			return w.persist(ctx, func(ctx context.Context) error {
				return client.IgnoreNotFound(w.Client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: victim}}))
			})
		},
		heal: func(ctx context.Context) error {
			if err := w.up(ctx); err != nil {
				return err
			}
			// The DaemonSet of an installation would replace the agent's pod, if it was deleted with the Node.
			w.of(agentName)[len(w.nodes)-1].Close(ctx)
			w.startAgent(victim)
			return nil
		},
	}
	return all
}

// command runs a program to its end.
func (w *world) command(ctx context.Context, name string, args ...string) error {
	if out, err := w.Run(ctx, name, args...); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

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
