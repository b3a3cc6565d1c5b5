// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports measures what a report costs, and how long it takes until the pod is marked.
package reports

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure {
	return []harness.Measure{
		{Name: "reports/cost", Rows: []string{smallRow, largeRow, growthRow, slices4Row, slices16Row, bytesRow}, Run: measureCosts},
		{Name: "reports/latency", Rows: []string{p50Row, p99Row, busyP50Row, busyP99Row, detectP50Row, detectP99Row}, Run: measureLatency},
		{Name: "reports/burst", Rows: []string{burstRow, labelledRow}, Run: measureBurst},
		{Name: "reports/idle", Rows: []string{idleRow, restartRow}, Run: measureIdle},
	}
}

const (
	bareApply = "one bare pod apply"
	podsAxis  = "pods per node"

	smallRow    = "report and mark, 3 pods per node"
	largeRow    = "report and mark, 110 pods per node"
	growthRow   = "report and mark, 110 pods per node compared with 3"
	slices4Row  = "report and mark, 110 pods per node, slices of 4 pods"
	slices16Row = "report and mark, 110 pods per node, slices of 16 pods"
	bytesRow    = "bytes to etcd, report and mark, 110 pods per node"
)

const (
	smallest = 3
	largest  = 110
)

// way is one way to report. All ways have about the same number of pods, on one or several nodes,
// so that no pod is written so often that the manager limits its writes.
type way struct {
	// row is the row of the results, or empty for a point of the curves.
	row            string
	pods, perSlice int

	agents []*fixture.Agent
	next   int
	// cpu and bytes are the processor time in ms and the bytes per transition, of each round.
	cpu, bytes []float64
}

// ways returns all ways that are measured: large nodes with slices of other sizes, and nodes with the
// numbers of pods of the curves.
func ways(between ...int) []*way {
	all := []*way{{row: slices4Row, pods: largest, perSlice: 4}, {row: slices16Row, pods: largest, perSlice: 16}}
	all = append(all, &way{row: smallRow, pods: smallest, perSlice: fixture.DefaultSlice})
	for _, pods := range between {
		all = append(all, &way{pods: pods, perSlice: fixture.DefaultSlice})
	}
	return append(all, &way{row: largeRow, pods: largest, perSlice: fixture.DefaultSlice})
}

// costs measures the API server's processor time per transition.
type costs struct {
	*harness.Bench
	server *harness.Server
	bare   *fixture.Bare
	watch  *fixture.Watch
	ways   []*way
	// bareCPU and bareBytes are those of bare applies, of each round.
	bareCPU, bareBytes []float64
	writes             int
}

func measureCosts(b *harness.Bench) harness.Output {
	c := &costs{Bench: b, server: b.Server(), ways: ways(harness.Pick(b, []int{10, 30, 60}, nil)...)}
	c.server.Manager()
	c.bare = fixture.NewBare(b, c.server)
	for i, w := range c.ways {
		c.setUp(fmt.Sprintf("way-%d", i), w)
	}
	for round := range harness.Pick(b, 5, 1) {
		c.round()
		b.Logf("round %d: one bare apply %.2f ms", round+1, c.bareCPU[round])
	}
	return c.output()
}

// setUp creates the nodes and pods of a way, writes the bare label of all pods and the first report,
// and waits until they are marked. A quick run has small nodes.
func (c *costs) setUp(name string, w *way) {
	c.Helper()
	perNode := harness.Pick(c.Bench, w.pods, min(w.pods, 6))
	nodes := (harness.Pick(c.Bench, largest, 6) + perNode - 1) / perNode
	fixture.CreateMarker(c.Bench, c.server, name, func(*v1alpha1.PodContainerProbe) {})
	cluster := fixture.Cluster{Name: name, Nodes: nodes, Pods: nodes * perNode}
	if c.watch == nil {
		c.watch = fixture.NewWatch(c.Bench, c.server)
	}
	for _, pod := range cluster.Create(c.Bench, c.server) {
		c.Must(c.bare.Write(c.Context(), pod.Name, pod.UID, "0"))
	}
	planned := 0
	for _, other := range c.ways {
		for _, agent := range other.agents {
			planned += len(agent.Pods)
		}
	}
	fixture.Planned(c.Bench, c.server, planned+cluster.Pods)
	for i := range nodes {
		agent := fixture.NewAgent(c.Bench, c.server, fixture.AgentClient(c.Bench, c.server, cluster.Node(i)), cluster.Node(i), w.perSlice)
		w.agents = append(w.agents, agent)
		marked := c.watch.Expect(fixture.Mark, fixture.Up, agent.Names()...)
		c.Must(agent.TakeOver(c.Context()))
		_, err := marked(c.Context())
		c.Must(err)
	}
}

// round measures every way once, each followed by bare applies.
func (c *costs) round() {
	c.Helper()
	idle := c.server.Counted(func() { c.Idle(harness.Pick(c.Bench, 4*time.Second, time.Second)) })
	n := harness.Pick(c.Bench, 100, 10)
	window := func(do func(*way), w *way) (cpu, bytes float64) {
		used := c.server.Counted(func() {
			for range n {
				do(w)
			}
		}).Without(idle)
		return used.CPU.Seconds() * 1000 / float64(n), used.WAL / 1000 / float64(n)
	}
	var bareCPU, bareBytes []float64
	for _, w := range c.ways {
		cpu, bytes := window(c.transition, w)
		w.cpu, w.bytes = append(w.cpu, cpu), append(w.bytes, bytes)
		cpu, bytes = window(c.bareWrite, w)
		bareCPU, bareBytes = append(bareCPU, cpu), append(bareBytes, bytes)
	}
	cpu, _ := harness.Mean(bareCPU)
	bytes, _ := harness.Mean(bareBytes)
	c.bareCPU, c.bareBytes = append(c.bareCPU, cpu), append(c.bareBytes, bytes)
}

// stride has no common divisor with the numbers of pods, and leads to another slice.
const stride = 31

func (w *way) pick() (agent *fixture.Agent, pod int) {
	perNode := len(w.agents[0].Pods)
	i := w.next * stride % (perNode * len(w.agents))
	w.next++
	return w.agents[i/perNode], i % perNode
}

// transition changes the state of the next pod and waits until a watch shows the label.
func (c *costs) transition(w *way) {
	c.Helper()
	agent, pod := w.pick()
	marked := c.watch.Expect(fixture.Mark, agent.Toggle(pod), agent.Pods[pod].Name)
	c.Must(agent.Write(c.Context(), agent.SliceOf(pod)))
	_, err := marked(c.Context())
	c.Must(err)
}

// bareWrite writes the label of the next pod and waits until a watch shows it.
func (c *costs) bareWrite(w *way) {
	c.Helper()
	agent, i := w.pick()
	pod := agent.Pods[i]
	c.writes++
	value := fmt.Sprint(c.writes)
	seen := c.watch.Expect(fixture.BareLabel, value, pod.Name)
	c.Must(c.bare.Write(c.Context(), pod.Name, types.UID(pod.UID), value))
	_, err := seen(c.Context())
	c.Must(err)
}

func (c *costs) output() harness.Output {
	bare, bareNoise := harness.Mean(c.bareCPU)
	bareBytes, _ := harness.Mean(c.bareBytes)
	row := func(w *way) harness.Result {
		mean, noise := harness.Mean(w.cpu)
		return harness.Result{Name: w.row, Value: mean, Unit: "ms", Noise: noise, Floor: harness.Positive(bare), FloorName: bareApply}
	}
	curve := c.ways[2:]
	last := curve[len(curve)-1]
	small, large := row(curve[0]), row(last)
	large.Budget = harness.RatioAtMost(3)
	growth := large
	growth.Name, growth.Floor, growth.FloorName, growth.Budget = growthRow, harness.Positive(small.Value), "3 pods per node", harness.RatioAtMost(1.5)
	bytes, bytesNoise := harness.Mean(last.bytes)
	cpus := harness.NewChart("API server's processor time per transition", podsAxis, "ms", "report and mark", bareApply)
	written := harness.NewChart("Bytes to etcd per transition", podsAxis, "KB", "report and mark", bareApply)
	for _, w := range curve {
		cpu, _ := harness.Mean(w.cpu)
		wal, _ := harness.Mean(w.bytes)
		cpus.Add(float64(w.pods), cpu, bare)
		written.Add(float64(w.pods), wal, bareBytes)
	}
	return harness.Output{
		Results: []harness.Result{
			small, large, growth, row(c.ways[0]), row(c.ways[1]),
			{
				Name: bytesRow, Value: bytes, Unit: "KB", Noise: bytesNoise, Floor: harness.Positive(bareBytes), FloorName: bareApply,
				Budget: harness.AtMost(10),
			},
		},
		Notes:  []string{fmt.Sprintf("The floor is the mean of %d rounds, ± %.1f %%.", len(c.bareCPU), 100*bareNoise)},
		Charts: []harness.Chart{cpus, written},
	}
}
