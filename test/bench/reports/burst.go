// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	burstRow    = "3,000 pods on 100 nodes report at once: writes of reports and pods per second until all are labelled"
	labelledRow = "the same: labelled pods per second"

	// markConcurrency is that of the manager's controller of marks, by default.
	markConcurrency = 32
)

// burst is a cluster in which all pods change at the same time.
type burst struct {
	*harness.Bench
	watch  *fixture.Watch
	bare   *fixture.Bare
	agents []*fixture.Agent
	pods   []string
	uids   []types.UID
}

func measureBurst(b *harness.Bench) harness.Output {
	m := &burst{Bench: b}
	m.setUp(harness.Pick(b, 100, 5), harness.Pick(b, 30, 10), harness.Pick(b, 10, 2))
	var written, labelled, bare []float64
	for round := range harness.Pick(b, 5, 1) {
		pods := float64(len(m.pods))
		bare = append(bare, pods/m.bareAll(fmt.Sprint(round+1)).Seconds())
		reports, took := m.reportAll()
		written, labelled = append(written, (float64(reports)+pods)/took.Seconds()), append(labelled, pods/took.Seconds())
		b.Logf("round %d: bare %.0f/s, labelled %.0f/s, with reports %.0f/s", round+1, bare[round], labelled[round], written[round])
	}
	return burstOutput(written, labelled, bare)
}

func (b *burst) setUp(nodes, perNode, markers int) {
	b.Helper()
	server := b.Server()
	server.Manager()
	group := func(i int) string { return fmt.Sprintf("marker-%02d", i%markers) }
	for i := range markers {
		fixture.CreateMarker(b.Bench, server, group(i), func(*v1alpha1.PodContainerProbe) {})
	}
	cluster := fixture.Cluster{Name: "burst", Nodes: nodes, Pods: nodes * perNode, Group: group}
	cluster.Create(b.Bench, server)
	fixture.Planned(b.Bench, server, cluster.Pods)
	b.bare, b.watch = fixture.NewBare(b.Bench, server), fixture.NewWatch(b.Bench, server)
	for i := range nodes {
		agent := fixture.NewAgent(b.Bench, server, fixture.AgentClient(b.Bench, server, cluster.Node(i)), cluster.Node(i), fixture.DefaultSlice)
		b.agents = append(b.agents, agent)
		for _, pod := range agent.Pods {
			b.pods, b.uids = append(b.pods, pod.Name), append(b.uids, types.UID(pod.UID))
		}
	}
	b.until(fixture.Mark, fixture.Up, func() {
		b.Each(nodes, harness.Clients, func(ctx context.Context, i int) error { return b.agents[i].TakeOver(ctx) })
	})
}

// until returns the time until all pods have the label that follows from the writes.
func (b *burst) until(label, value string, write func()) time.Duration {
	b.Helper()
	seen, start := b.watch.Expect(label, value, b.pods...), time.Now()
	write()
	times, err := seen(b.Context())
	b.Must(err)
	return times[len(times)-1].Sub(start)
}

// reportAll changes the states of all pods. All agents report at the same time. It returns the
// number of reports, and the time until all pods are labelled.
func (b *burst) reportAll() (reports int, took time.Duration) {
	b.Helper()
	value := ""
	for _, agent := range b.agents {
		for i := range agent.Pods {
			value = agent.Toggle(i)
		}
		reports += agent.Slices()
	}
	return reports, b.until(fixture.Mark, value, func() {
		b.Each(len(b.agents), len(b.agents), func(ctx context.Context, i int) error { return b.agents[i].WriteAll(ctx) })
	})
}

// bareAll writes a label of all pods, as many at a time as the manager does.
func (b *burst) bareAll(value string) time.Duration {
	b.Helper()
	return b.until(fixture.BareLabel, value, func() {
		b.Each(len(b.pods), markConcurrency, func(ctx context.Context, i int) error {
			return b.bare.Write(ctx, b.pods[i], b.uids[i], value)
		})
	})
}

func burstOutput(written, labelled, bare []float64) harness.Output {
	floor, _ := harness.Mean(bare)
	rate := func(name string, values []float64) harness.Result {
		mean, noise := harness.Mean(values)
		return harness.Result{Name: name, Value: mean, Unit: "/s", Noise: noise, Floor: floor, FloorName: "bare applies with the manager's concurrency"}
	}
	all := rate(burstRow, written)
	all.Budget = harness.RatioAtLeast(0.8)
	return harness.Output{Results: []harness.Result{all, rate(labelledRow, labelled)}}
}
