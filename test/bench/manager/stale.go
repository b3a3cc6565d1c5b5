// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// The rows of the measure of stale states.
const (
	rowStaleRate      = "20 nodes with 1,000 pods are lost at once: changed pods per second"
	rowStaleCPU       = "manager's processor time per pod of a lost node"
	rowStaleHeartbeat = "manager's processor time per heartbeat of a Node of 15 kB, with staleAfterSeconds"
)

const (
	// stale is the value of fixture.Mark of stale states.
	stale = "stale"
	// staleAfter is the shortest value of staleAfterSeconds.
	staleAfter = 10 * time.Second
	// staleLimit is how many pods per second the manager changes because of stale states.
	staleLimit = 100
)

// zones is a cluster of which some nodes are lost.
type zones struct {
	*harness.Bench
	server  *harness.Server
	cluster fixture.Cluster
	manager *harness.Program
}

// measureStale loses nodes, after it has measured what their heartbeats cost.
func measureStale(b *harness.Bench) harness.Output {
	z := &zones{Bench: b, server: b.Server(), cluster: fixture.Cluster{
		Name: "zone", Nodes: harness.Pick(b, 60, 4), Pods: harness.Pick(b, 3000, 12),
	}}
	pods := z.cluster.Create(b, z.server)
	z.createAgents()
	fixture.CreateMarker(b, z.server, z.cluster.Name, func(probe *v1alpha1.PodContainerProbe) {
		probe.StaleAfterSeconds = new(int32)
		*probe.StaleAfterSeconds = int32(staleAfter.Seconds())
		probe.MarkerPolicy = append(probe.MarkerPolicy, v1alpha1.ProbeMarkerPolicy{
			State: v1alpha1.ProbeUnknown, Labels: map[string]string{fixture.Mark: stale},
		})
	})
	z.setReady(z.cluster.Nodes, corev1.ConditionTrue, time.Now())
	z.manager = z.server.Manager()
	fixture.Planned(b, z.server, z.cluster.Pods)
	agents := make([]*fixture.Agent, z.cluster.Nodes)
	for i := range agents {
		agents[i] = fixture.NewAgent(b, z.server, z.server.Raw, z.cluster.Node(i), fixture.DefaultSlice)
	}
	b.Each(len(agents), harness.Clients, func(ctx context.Context, i int) error { return agents[i].TakeOver(ctx) })
	marked(b, z.server, fixture.Up)
	b.Idle(2 * time.Second)

	heartbeat := z.heartbeats(harness.Pick(b, 20, 1))
	lost := z.cluster.Nodes / 3
	var names []string
	for i, pod := range pods {
		if i%z.cluster.Nodes < lost {
			names = append(names, pod.Name)
		}
	}
	seen := fixture.NewWatch(b, z.server).Expect(fixture.Mark, stale, names...)
	before := z.manager.Usage()
	z.setReady(lost, corev1.ConditionUnknown, time.Now().Add(-staleAfter))
	times, err := seen(b.Context())
	b.Must(err)
	cpu := (z.manager.Usage().CPU - before.CPU).Seconds() * 1000 / float64(len(names))
	z.manager.Stop()
	took := times[len(times)-1].Sub(times[0])
	return harness.Output{
		Results: []harness.Result{
			{Name: rowStaleRate, Value: float64(len(times)-1) / took.Seconds(), Floor: staleLimit, FloorName: "the limit", Budget: harness.RatioAtMost(1.1)},
			{
				Name: rowStaleCPU, Value: cpu, Unit: "ms", Floor: harness.Positive(bareApply(b, z.server, harness.Pick(b, 1000, 10))),
				FloorName: "client of one bare apply", Budget: harness.RatioAtMost(3),
			},
			{Name: rowStaleHeartbeat, Value: heartbeat, Unit: "ms"},
		},
		Notes: []string{fmt.Sprintf("The cluster has %d nodes with %d pods, %d nodes of which are lost. The conditions of these Nodes change at once, "+
			"which Kubernetes' node controller spreads over minutes. At the limit, 200 nodes with 110 pods take 220 seconds. "+
			"5,000 Nodes have 17 heartbeats per second.", z.cluster.Nodes, z.cluster.Pods, lost)},
	}
}

// createAgents creates a ready pod of the agent on each node.
func (z *zones) createAgents() {
	z.Helper()
	z.Each(z.cluster.Nodes, harness.Clients, func(ctx context.Context, i int) error {
		pod := fixture.Pod(fmt.Sprintf("agent-%d", i), z.cluster.Node(i), "agent", "192.0.2.1")
		pod.Namespace, pod.Spec.ServiceAccountName = env.SystemNamespace, "seamark-agent"
		_, err := env.CreatePod(ctx, z.server.Client, pod)
		return err
	})
}

// setReady sets the condition Ready of the first n nodes.
func (z *zones) setReady(n int, status corev1.ConditionStatus, since time.Time) {
	z.Helper()
	z.Each(n, harness.Clients, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: z.cluster.Node(i)}}
		if err := z.server.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		now := metav1.Now()
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since), LastHeartbeatTime: now,
		}}
		node.Status.Images = images()
		return z.server.Client.Status().Update(ctx, node)
	})
}

// images returns the images of a Node of typical size.
func images() []corev1.ContainerImage {
	var all []corev1.ContainerImage
	for i := range 50 {
		name := fmt.Sprintf("registry.example.com/team/service-%02d", i)
		all = append(all, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064d", name, i), fmt.Sprintf("%s:1.2.%d", name, i)}, SizeBytes: int64(i) << 20,
		})
	}
	return all
}

// heartbeats writes the conditions of all nodes several times, and returns the manager's processor time per
// write in ms.
func (z *zones) heartbeats(rounds int) float64 {
	z.Helper()
	used := func(work func()) float64 {
		before := z.manager.Usage()
		work()
		return (z.manager.Usage().CPU - before.CPU).Seconds() * 1000
	}
	since, began := time.Now(), time.Now()
	busy := used(func() {
		for range rounds {
			z.setReady(z.cluster.Nodes, corev1.ConditionTrue, since)
		}
	})
	idle := used(func() { z.Idle(time.Since(began)) })
	return max(0, busy-idle) / float64(rounds*z.cluster.Nodes)
}

// The rows of the measure of a neighbour.
const (
	rowNeighbour    = "report until a watch shows the label, next to a namespace that contests exclusive marks, median"
	rowNeighbourP90 = "report until a watch shows the label, next to a namespace that contests exclusive marks, 90th percentile"
)

const (
	// hostile is the namespace of the contests: contestMarkers with contestProbes each.
	hostile                       = "hostile"
	contestMarkers, contestProbes = 16, 16
	// moveEvery is the time between two pods of the namespace that change to another group.
	moveEvery = 200 * time.Millisecond
)

// contest is a namespace whose pods all claim the marks of all probes, and an honest namespace next to it.
type contest struct {
	*harness.Bench
	server  *harness.Server
	honest  fixture.Cluster
	hostile fixture.Cluster
	watch   *fixture.Watch
	agent   *fixture.Agent
}

// measureNeighbour measures the marks of a pod alone, and next to the contests.
func measureNeighbour(b *harness.Bench) harness.Output {
	c := &contest{
		Bench: b, server: b.Server(), honest: fixture.Cluster{Name: "honest", Nodes: 1, Pods: 20},
		hostile: fixture.Cluster{Name: hostile, Nodes: harness.Pick(b, 25, 2), Pods: harness.Pick(b, 1000, 20)},
	}
	c.honest.Create(b, c.server)
	fixture.CreateMarker(b, c.server, c.honest.Name, func(*v1alpha1.PodContainerProbe) {})
	manager := c.server.Manager()
	fixture.Planned(b, c.server, c.honest.Pods)
	c.watch = fixture.NewWatch(b, c.server)
	c.agent = fixture.NewAgent(b, c.server, c.server.Raw, c.honest.Node(0), fixture.DefaultSlice)
	b.Must(c.agent.TakeOver(b.Context()))
	marked(b, c.server, fixture.Up)
	b.Idle(harness.Pick(b, 4*time.Second, time.Second))
	n := harness.Pick(b, 200, 4)
	alone := c.latencies(n)

	pods := c.contend()
	fixture.Planned(b, c.server, c.honest.Pods+c.hostile.Pods)
	for i := range c.hostile.Nodes {
		b.Must(fixture.NewAgent(b, c.server, c.server.Raw, c.hostile.Node(i), fixture.DefaultSlice).TakeOver(b.Context()))
	}
	ctx, stop := context.WithCancel(b.Context())
	moved := make(chan error, 1)
	go func() { moved <- c.move(ctx, pods) }()
	beside := c.latencies(n)
	stop()
	b.Must(<-moved)
	manager.Stop()
	result := func(name string, p float64) harness.Result {
		return harness.Result{
			Name: name, Value: harness.Percentile(beside, p), Unit: "ms", Floor: harness.Percentile(alone, p), FloorName: "alone",
			Budget: harness.RatioAtMost(2),
		}
	}
	return harness.Output{
		Results: []harness.Result{result(rowNeighbour, 0.5), result(rowNeighbourP90, 0.9)},
		Notes: []string{fmt.Sprintf("All %d pods of the other namespace claim the exclusive marks of %d probes. Each %s, one of them changes to another group.",
			c.hostile.Pods, contestMarkers*contestProbes, moveEvery)},
	}
}

// latencies lets one pod after the other change, and returns the times until a watch shows the labels, in ms.
func (c *contest) latencies(n int) (all []float64) {
	c.Helper()
	for i := range n {
		pod := i % c.honest.Pods
		seen := c.watch.Expect(fixture.Mark, c.agent.Toggle(pod), c.agent.Pods[pod].Name)
		began := time.Now()
		c.Must(c.agent.Write(c.Context(), c.agent.SliceOf(pod)))
		times, err := seen(c.Context())
		c.Must(err)
		all = append(all, times[0].Sub(began).Seconds()*1000)
		c.Idle(100 * time.Millisecond)
	}
	return all
}

// contend creates the nodes, pods and markers of the contests.
func (c *contest) contend() []*corev1.Pod {
	c.Helper()
	c.Must(c.server.Client.Create(c.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hostile}}))
	nodes := c.hostile
	nodes.Pods = 0
	nodes.Create(c.Bench, c.server)
	pods := make([]*corev1.Pod, c.hostile.Pods)
	c.Each(len(pods), harness.Clients, func(ctx context.Context, i int) (err error) {
		pod := c.hostile.Pod(i)
		pod.Namespace, pod.Labels[shard] = hostile, "0"
		pods[i], err = env.CreatePod(ctx, c.server.Client, pod)
		return err
	})
	c.Each(contestMarkers, harness.Clients, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("contest-%d", i)
		marker := builders.Marker(hostile, name).Unsaved().Selector(fixture.Group, hostile)
		for j := range contestProbes {
			marker.Probe(builders.Probe(fmt.Sprintf("probe-%d", j)).Container("main").
				Label(v1alpha1.ProbeSucceeded, fmt.Sprintf("example.com/%s-%d", name, j), fixture.Up).
				Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: shard}))
		}
		return c.server.Client.Create(ctx, marker.Build())
	})
	return pods
}

// move changes the groups of the pods until the context ends.
func (c *contest) move(ctx context.Context, pods []*corev1.Pod) error {
	ticker := time.NewTicker(moveEvery)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		pod := pods[i%len(pods)]
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: "%d"}}}`, shard, i%3)
		// The last change ends with the measure.
		if err := c.server.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("move pod %s to another group: %w", pod.Name, err)
		}
	}
}
