// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	product "github.com/seamark-dev/seamark/internal/agent"
	"github.com/seamark-dev/seamark/internal/agent/cri"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// node is a node with its containers and its agent.
type node struct {
	world *world
	name  string
	// process is the name of the agent's process.
	process string
	running bool
	stop    context.CancelFunc
	done    chan struct{}
	// tracks receives the changes of containers. It is nil until the agent tracks them.
	tracks *cri.Callbacks
	// containers are the newest instances. events are those that the agent has not got yet.
	containers map[identity.ContainerKey]cri.Instance
	events     []containerEvent
}

// containerEvent is a change of a container.
type containerEvent struct {
	instance cri.Instance
	gone     bool
}

// startAgent starts the agent of the node.
func (w *world) startAgent(n *node) {
	w.started++
	n.running, n.process, n.done, n.events = true, fmt.Sprintf("agent %d of %s", w.started, n.name), make(chan struct{}), nil
	ctx, stop := context.WithCancel(w.ctx)
	n.stop = stop
	agent, err := product.New(product.Options{
		NodeName: n.name, Node: simulated{n}, ExecConcurrency: 1, ReportInterval: 100 * time.Millisecond, Log: logr.Discard(),
		Config:  &rest.Config{Host: "http://server", Transport: transport{world: w, agent: n, ended: ctx}},
		Metrics: agentmetrics.New(prometheus.NewRegistry()),
	})
	if err != nil {
		panic(err)
	}
	done := n.done
	w.running.Go(func() {
		defer close(done)
		_ = agent.Run(ctx)
	})
	w.trace("%s starts", n.process)
}

// stopAgent ends the process of the agent. It writes nothing any more.
func (w *world) stopAgent(n *node) {
	w.trace("%s ends", n.process)
	n.running = false
	n.stop()
	for _, t := range w.watches {
		if t.node == n {
			t.end()
		}
	}
	w.watches = slices.DeleteFunc(w.watches, func(t *watch) bool { return t.closed })
	<-n.done
	w.mu.Lock()
	defer w.mu.Unlock()
	n.tracks = nil
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c.ended.Err() != nil })
}

// setClock sets the clock of a node while its agent restarts: what it has stored before has other times.
func (w *world) setClock() {
	n, by := w.anyNode(), time.Duration(w.rand.IntN(7200)-3600)*time.Second
	running := n.running
	w.stopAgent(n)
	move := func(t *metav1.Time) {
		if !t.IsZero() {
			*t = metav1.NewTime(t.Add(by))
		}
	}
	for _, o := range w.server.List(reports) {
		if o.(*seamarkv1alpha1.ProbeReport).NodeName != n.name { //nolint:forcetypeassert // all are
			continue
		}
		_, _ = w.server.Update(n.process, reports, client.ObjectKeyFromObject(o), preconditions{}, func(o client.Object) error {
			for _, pod := range o.(*seamarkv1alpha1.ProbeReport).Pods { //nolint:forcetypeassert // of this kind
				for i := range pod.Probes {
					move(&pod.Probes[i].LastProbeTime)
					move(&pod.Probes[i].LastTransitionTime)
				}
			}
			return nil
		})
	}
	w.mu.Lock()
	for key, c := range n.containers {
		c.StartedAt = c.StartedAt.Add(by)
		n.containers[key] = c
	}
	w.mu.Unlock()
	if running {
		w.startAgent(n)
	}
}

// set changes a container.
func (n *node) set(instance cri.Instance, gone bool) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if gone {
		delete(n.containers, instance.ContainerKey)
	} else {
		n.containers[instance.ContainerKey] = instance
	}
	n.events = append(n.events, containerEvent{instance, gone})
}

// observe passes the next changes of containers to the agent, and reports whether there were any.
func (n *node) observe(count int) bool {
	n.world.mu.Lock()
	tracks := n.tracks
	count = min(count, len(n.events))
	if tracks == nil || count == 0 {
		n.world.mu.Unlock()
		return false
	}
	events := n.events[:count]
	n.events = n.events[count:]
	n.world.mu.Unlock()
	for _, e := range events {
		if e.gone {
			tracks.OnGone(e.instance.ContainerKey)
		} else {
			tracks.OnChange(e.instance)
		}
	}
	return true
}

// simulated is the runtime of a node.
type simulated struct{ *node }

// Track reports all containers, and then those that change.
func (s simulated) Track(ctx context.Context, callbacks cri.Callbacks) {
	s.world.mu.Lock()
	for _, instance := range s.containers {
		callbacks.OnChange(instance)
	}
	s.events = nil
	callbacks.OnSynced()
	s.tracks = &callbacks
	s.world.mu.Unlock()
	<-ctx.Done()
}

// Jitter returns half of the time.
func (simulated) Jitter(longest time.Duration) time.Duration { return longest / 2 }

var errNoContainer = errors.New("no such container")

// Probe returns the outcome of the run. The command of each probe names its marker and itself.
func (s simulated) Probe(_ context.Context, target probing.Target) (probing.Outcome, error) {
	// Probes that start at the same time end one after the other, in the same order in each run of a case.
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(target.Owner.Pod + target.Owner.Probe))
	time.Sleep(time.Duration(hash.Sum32()%1e6) * time.Nanosecond) //nolint:forbidigo // the time is virtual
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, instance := range s.containers {
		if instance.ID == target.ContainerID && instance.Running {
			return s.world.probe(instance, target.Exec.Command), nil
		}
	}
	return probing.Outcome{}, errNoContainer
}

// containersOf returns the containers of a pod.
func (n *node) containersOf(pod types.UID) []cri.Instance {
	var found []cri.Instance
	for key, instance := range n.containers {
		if key.PodUID == pod {
			found = append(found, instance)
		}
	}
	slices.SortFunc(found, func(a, b cri.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return found
}
