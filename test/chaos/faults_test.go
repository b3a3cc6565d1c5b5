// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/chaos/programs"
	"github.com/seamark-dev/seamark/test/chaos/proxy"
	"github.com/seamark-dev/seamark/test/chaos/schedule"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// fault is something that fails.
type fault struct {
	// least and most bound how long it lasts.
	least, most time.Duration
	// api is whether users can change objects meanwhile. Otherwise, only the answers of containers change.
	api bool
	// inject starts it, again repeats it at each step, and heal ends it. again and heal can be nil.
	inject, again func(ctx context.Context, random *rand.Rand) error
	heal          func(ctx context.Context) error
}

// steps draws how long the fault lasts.
func (f fault) steps(random *rand.Rand) int {
	return int(schedule.Between(random, f.least, f.most) / stepTime)
}

// faults returns all faults by their names.
func (w *world) faults() map[string]fault {
	all := map[string]fault{"none": {least: 6 * time.Second, most: 6 * time.Second, api: true, inject: nothing}}
	for _, more := range []map[string]fault{
		w.killed(), w.restarted(), w.clocks(), w.limited(), w.stopped(), w.leases(), w.proxied(), w.controlPlane(), w.nodeFaults(), w.hostile(),
	} {
		maps.Copy(all, more)
	}
	return all
}

func nothing(context.Context, *rand.Rand) error { return nil }

// names are the short names of the programs.
func names() map[string]string {
	return map[string]string{"manager": managerName, "agent": agentName, "workloads": workloadsName}
}

// some returns one of the processes of a program, or all.
func (w *world) some(random *rand.Rand, name string) []*programs.Program {
	all := w.of(name)
	if i := random.IntN(len(all) + 1); i < len(all) {
		return all[i : i+1]
	}
	return all
}

// killed are programs that end at any time, several times.
func (w *world) killed() map[string]fault {
	all := map[string]fault{}
	for short, name := range names() {
		kill := func(_ context.Context, random *rand.Rand) error {
			for _, program := range w.some(random, name) {
				if err := program.Signal(syscall.SIGKILL); err != nil {
					return fmt.Errorf("kill: %w", err)
				}
			}
			return nil
		}
		all[short+" killed"] = fault{least: 4 * time.Second, most: 10 * time.Second, api: true, inject: kill, again: kill}
	}
	return all
}

// leaseTime is the duration of the leases of leaders, with some time for another one to lead.
const leaseTime = 20 * time.Second

// stopped are programs that do not run for longer than a lease, and continue as if nothing had happened.
func (w *world) stopped() map[string]fault {
	all := map[string]fault{}
	for short, name := range names() {
		var stopped []*programs.Program
		all[short+" stopped"] = fault{
			least: leaseTime, most: leaseTime + 10*time.Second, api: true,
			inject: func(ctx context.Context, random *rand.Rand) error {
				stopped = w.some(random, name)
				if name != agentName {
					stopped = w.leader(ctx, name)
				}
				return signal(stopped, syscall.SIGSTOP)
			},
			heal: func(context.Context) error { return signal(stopped, syscall.SIGCONT) },
		}
	}
	return all
}

func signal(all []*programs.Program, signal syscall.Signal) error {
	for _, program := range all {
		if err := program.Signal(signal); err != nil {
			return fmt.Errorf("signal: %w", err)
		}
	}
	return nil
}

// leader returns the process of a program that leads, or all of them if none says so.
func (w *world) leader(ctx context.Context, name string) []*programs.Program {
	all := w.of(name)
	for i, program := range all {
		if sample, err := program.Sample(ctx); err == nil && sample.Leads {
			return all[i : i+1]
		}
	}
	return all
}

// leases are leases that leaders lose although they run.
func (w *world) leases() map[string]fault {
	each := func(change func(context.Context, *coordinationv1.Lease) error) func(context.Context, *rand.Rand) error {
		return func(ctx context.Context, _ *rand.Rand) error {
			for _, name := range []string{managerName, workloadsName} {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.SystemNamespace, Name: name}}
				if err := change(ctx, lease); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("lease %s: %w", name, err)
				}
			}
			return nil
		}
	}
	remove := each(func(ctx context.Context, lease *coordinationv1.Lease) error { return w.Client.Delete(ctx, lease) })
	steal := each(func(ctx context.Context, lease *coordinationv1.Lease) error {
		return edit(ctx, w, lease, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new("thief"), new(int32(3))
			l.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
		})
	})
	return map[string]fault{
		"lease deleted": {least: 4 * time.Second, most: 10 * time.Second, api: true, inject: remove, again: remove},
		"lease stolen":  {least: 10 * time.Second, most: 20 * time.Second, api: true, inject: steal},
	}
}

// proxied are the faults of the connection to the API server.
func (w *world) proxied() map[string]fault {
	all := map[string]fault{}
	add := func(name string, least, most time.Duration, faults ...proxy.Fault) {
		var before map[proxy.Kind]proxy.Count
		all[name] = fault{
			least: least, most: most, api: true,
			inject: func(context.Context, *rand.Rand) error {
				before = w.proxy.Counts()
				return w.proxy.Set(faults...)
			},
			heal: func(context.Context) error {
				w.proxy.Clear()
				if kind := faults[0].Kind; w.proxy.Counts()[kind].Hits == before[kind].Hits {
					return fmt.Errorf("the proxy had no request for %s", kind)
				}
				return nil
			},
		}
	}
	const short, long = 6 * time.Second, 14 * time.Second
	half := proxy.Match{OneIn: 2}
	add("connections down", 10*time.Second, 40*time.Second, proxy.Fault{Kind: proxy.Down})
	add("connections of agents down", 10*time.Second, 40*time.Second, proxy.Fault{Kind: proxy.Down, Match: proxy.Match{Clients: w.clients(agentName)}})
	add("answers after 500 ms", short, long, proxy.Fault{Kind: proxy.Delay, Delay: 500 * time.Millisecond})
	add("429 with Retry-After", short, long, proxy.Fault{Kind: proxy.Refuse, Code: http.StatusTooManyRequests, RetryAfter: 1, Match: half})
	add("429 without Retry-After", short, long, proxy.Fault{Kind: proxy.Refuse, Code: http.StatusTooManyRequests, Match: half})
	add("500", short, long, proxy.Fault{Kind: proxy.Refuse, Code: http.StatusInternalServerError, Match: half})
	add("503", short, long, proxy.Fault{Kind: proxy.Refuse, Code: http.StatusServiceUnavailable, Match: half})
	add("watches cut", short, long, proxy.Fault{Kind: proxy.CutWatches})
	add("responses to writes lost", short, long, proxy.Fault{Kind: proxy.LoseResponse, Match: half})
	add("watches ended", short, long, proxy.Fault{Kind: proxy.EndWatches, After: time.Second})
	add("watches 30 s late", 20*time.Second, 40*time.Second, proxy.Fault{Kind: proxy.DelayWatches, Delay: 30 * time.Second})
	add("watches expired", short, long, proxy.Fault{Kind: proxy.Expire, After: time.Second})
	return all
}

// clients returns the names of a program's processes in the proxy.
func (w *world) clients(name string) []string {
	if name == agentName {
		var all []string
		for _, node := range w.nodes {
			all = append(all, agentName+"-"+node.Name)
		}
		return all
	}
	return []string{name + "-0", name + "-1"}
}
