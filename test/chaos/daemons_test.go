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
