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
