// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	idleRow    = "writes without a change"
	restartRow = "writes of a restart of the manager and the agent"
)

// ours reports whether a request is a write of an object that Seamark writes. Leases and the API
// server's own objects are not.
func ours(r env.Request) bool {
	return r.IsWrite() && slices.Contains([]string{"pods", "nodepodprobes", "probereports", "podprobemarkers", "events", "nodes"}, r.Resource)
}

// measureIdle counts the writes while nothing changes: before and after the programs are started
// again, and of the start itself.
func measureIdle(b *harness.Bench) harness.Output {
	n := newNode(b, probePeriod)
	settle, period := harness.Pick(b, 15*time.Second, 2*time.Second), harness.Pick(b, 50*time.Second, 3*time.Second)
	// The agent reports what it has in force at the latest after ten seconds.
	b.Idle(settle)
	first := n.written(func() { n.idle(period) })
	restart := n.written(func() {
		n.agent.Restart()
		n.manager.Restart()
		n.agent.Runs("seamark_agent_planned_probes", float64(len(n.pods)))
		n.manager.Runs("go_goroutines", 1)
		b.Idle(settle)
	})
	second := n.written(func() { n.idle(period) })
	return harness.Output{
		Results: []harness.Result{
			{Name: idleRow, Value: first + second, Budget: harness.AtMost(0)},
			{Name: restartRow, Value: restart, Budget: harness.AtMost(0)},
		},
		Notes: []string{fmt.Sprintf("Counted for %.0f s before and %.0f s after the restarts, with %d pods that are probed every second.",
			period.Seconds(), period.Seconds(), len(n.pods))},
	}
}

// written returns the number of writes during work, and logs them.
func (n *node) written(work func()) float64 {
	n.Helper()
	requests := n.server.Counted(func() {
		work()
		// The API server counts a request after its response.
		n.Idle(100 * time.Millisecond)
	}).Requests
	for request, count := range requests {
		if ours(request) {
			n.Logf("%d × %+v", count, request)
		}
	}
	return float64(requests.Count(ours))
}

// idle waits. The measure fails if the agent does not probe or the manager does not run: they would
// not write either.
func (n *node) idle(period time.Duration) {
	n.Helper()
	const runs = "seamark_agent_probes_total"
	before, err := n.agent.Total(n.Context(), runs)
	n.Must(err)
	n.Idle(period)
	after, err := n.agent.Total(n.Context(), runs)
	n.Must(err)
	if after-before < float64(len(n.pods)) {
		n.Fatalf("the agent ran %.0f probes of %d pods in %s, want at least one of each pod", after-before, len(n.pods), period)
	}
	_, err = n.manager.Families(n.Context())
	n.Must(err)
}

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
