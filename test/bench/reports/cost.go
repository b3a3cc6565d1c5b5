// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The names of the floors and charts.
const (
	bareApply  = "one bare pod apply"
	cpuChart   = "transition-cpu"
	bytesChart = "transition-bytes"
)

// The sizes of the nodes, in pods.
func sizes() []int { return []int{3, 10, 30, 60, 110} }

const (
	smallest = 3
	largest  = 110
)

// defaultSlice is how many pods the agent puts into a slice.
const defaultSlice = 8

func cpuRow(pods int) string { return fmt.Sprintf("report and mark, %d pods per node", pods) }

func sliceRow(perSlice int) string {
	return fmt.Sprintf("report and mark, %d pods per node, slices of %d pods", largest, perSlice)
}

const (
	growthRow   = "report and mark, 110 pods per node compared with 3"
	wholeRow    = "report and mark, 110 pods per node, all states in one status (before slices)"
	bytesRow    = "bytes to etcd, report and mark, 110 pods per node"
	bytesAllRow = "bytes to etcd, 110 pods per node, all states in one status (before slices)"
)

func costRows() []string {
	var rows []string
	for _, n := range sizes() {
		rows = append(rows, cpuRow(n))
	}
	return append(rows, growthRow, sliceRow(4), sliceRow(16), wholeRow, bytesRow, bytesAllRow)
}

// way is one way to report. All ways have about the same number of pods, on one or several nodes,
// so that no pod is written so often that the manager limits its writes.
type way struct {
	pods, perSlice int
	// whole reports all states in the status of the NodePodProbe.
	whole bool

	agents []*fixture.Agent
	next   int
	// cpu and bytes are the processor time in ms and the bytes per transition, of each round.
	cpu, bytes []float64
}

func (w *way) name() string {
	if w.whole {
		return fmt.Sprintf("whole-%d", w.pods)
	}
	return fmt.Sprintf("slices-%d-%d", w.perSlice, w.pods)
}

// ways returns all ways that are measured.
func ways() []*way {
	var out []*way
	for _, n := range sizes() {
		out = append(out, &way{pods: n, perSlice: defaultSlice}, &way{pods: n, whole: true})
	}
	return append(out, &way{pods: largest, perSlice: 4}, &way{pods: largest, perSlice: 16})
}

// costs measures the API server's processor time per transition.
type costs struct {
	run    *harness.Run
	server *harness.Server
	bare   *fixture.Bare
	watch  *fixture.Watch
	// scrape and idle are the cost of a reading of the counters, and the rate without work, of
	// the current round.
	scrape, idle harness.Counters
	// bareCPU and bareBytes are those of bare applies, of each round.
	bareCPU, bareBytes []float64
	writes             int
}

func measureCosts(ctx context.Context, r *harness.Run) (harness.Output, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	manager, err := server.Manager(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	c := &costs{run: r, server: server}
	if c.bare, err = fixture.NewBare(ctx, server); err != nil {
		return harness.Output{}, err
	}
	ways := ways()
	if err := c.setUp(ctx, ways); err != nil {
		return harness.Output{}, err
	}
	r.Log("%d nodes report", len(ways))
	for round := range harness.Pick(r, 5, 1) {
		if err := c.round(ctx, ways); err != nil {
			return harness.Output{}, err
		}
		r.Log("round %d: one bare apply %.2f ms", round+1, c.bareCPU[len(c.bareCPU)-1])
	}
	out := c.output(ways)
	for _, w := range ways {
		if w.pods == largest && w.perSlice == defaultSlice {
			out.Profiles, err = server.Profiled(ctx, harness.Pick(r, 8*time.Second, time.Second),
				map[string]*harness.Program{"seamark-manager": manager}, func(ctx context.Context) error { return c.transition(ctx, w) })
		}
	}
	return out, err
}

// perNode returns how many pods a node of a way has. A quick run has small nodes.
func (c *costs) perNode(w *way) int { return harness.Pick(c.run, w.pods, min(w.pods, 6)) }

// setUp creates the nodes and pods of all ways, and reports from all of them.
func (c *costs) setUp(ctx context.Context, ways []*way) (err error) {
	for _, w := range ways {
		if err := fixture.Marker(ctx, c.server.Client, w.name(), nil, 0); err != nil {
			return err
		}
		perNode := c.perNode(w)
		nodes := (harness.Pick(c.run, largest, 6) + perNode - 1) / perNode
		node := func(i int) string { return fmt.Sprintf("%s-%d", w.name(), i) }
		for i := range nodes {
			if err := fixture.Node(ctx, c.server.Client, node(i)); err != nil {
				return err
			}
		}
		if _, err := fixture.Pods(ctx, c.server.Client, nodes*perNode, func(i int) *corev1.Pod {
			return fixture.Pod(fmt.Sprintf("%s-5d8f7c9b6d-%05d", w.name(), i), node(i/perNode), w.name(), fmt.Sprintf("10.0.0.%d", i+1))
		}); err != nil {
			return err
		}
		for i := range nodes {
			plan, err := fixture.Planned(ctx, c.server.Client, node(i), perNode)
			if err != nil {
				return err
			}
			agent, err := fixture.NewAgent(ctx, c.server, plan, max(w.perSlice, 1))
			if err != nil {
				return err
			}
			w.agents = append(w.agents, agent)
		}
	}
	if c.watch, err = fixture.NewWatch(ctx, c.server.Client); err != nil {
		return err
	}
	for _, w := range ways {
		if err := c.start(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
	}
	return nil
}

// start writes the bare label of all pods and the first report, and waits until they are marked.
func (c *costs) start(ctx context.Context, w *way) error {
	var names []string
	for _, agent := range w.agents {
		for _, pod := range agent.Pods {
			names = append(names, pod.Name)
			if err := c.bare.Write(ctx, pod.Name, types.UID(pod.UID), "0"); err != nil {
				return err
			}
		}
	}
	marked := c.watch.Expect(fixture.Mark, fixture.Up, names...)
	for _, agent := range w.agents {
		report := agent.TakeOver
		if w.whole {
			report = agent.WriteStatus
		}
		if err := report(ctx); err != nil {
			return err
		}
	}
	_, err := marked(ctx)
	return err
}

// round measures every way once.
func (c *costs) round(ctx context.Context, ways []*way) error {
	if err := c.baseline(ctx); err != nil {
		return err
	}
	var bareCPU, bareBytes []float64
	for _, w := range ways {
		n := harness.Pick(c.run, 100, 10)
		if w.whole {
			n = harness.Pick(c.run, 30, 10)
		}
		cpu, bytes, err := c.window(ctx, n, func(ctx context.Context) error { return c.transition(ctx, w) })
		if err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
		w.cpu, w.bytes = append(w.cpu, cpu), append(w.bytes, bytes)
		if w.whole {
			continue
		}
		cpu, bytes, err = c.window(ctx, n, func(ctx context.Context) error { return c.bareWrite(ctx, w) })
		if err != nil {
			return err
		}
		bareCPU, bareBytes = append(bareCPU, cpu), append(bareBytes, bytes)
	}
	cpu, _ := harness.Mean(bareCPU)
	bytes, _ := harness.Mean(bareBytes)
	c.bareCPU, c.bareBytes = append(c.bareCPU, cpu), append(c.bareBytes, bytes)
	return nil
}

// baseline measures what a reading of the counters costs, and what the API server does without
// work.
func (c *costs) baseline(ctx context.Context) error {
	var readings []harness.Counters
	for range 4 {
		reading, err := c.server.Counters(ctx)
		if err != nil {
			return err
		}
		readings = append(readings, reading)
	}
	c.scrape = readings[3].Since(readings[0])
	c.scrape.APIServer /= 3
	if err := harness.Idle(ctx, harness.Pick(c.run, 4*time.Second, time.Second)); err != nil {
		return err
	}
	after, err := c.server.Counters(ctx)
	if err != nil {
		return err
	}
	c.idle = after.Since(readings[3])
	c.idle.APIServer = max(0, c.idle.APIServer-c.scrape.APIServer)
	return nil
}

// window does something n times, and returns the processor time in ms and the bytes to etcd per
// time, without the baseline.
func (c *costs) window(ctx context.Context, n int, do func(context.Context) error) (cpu, bytes float64, err error) {
	before, err := c.server.Counters(ctx)
	if err != nil {
		return 0, 0, err
	}
	for range n {
		if err := do(ctx); err != nil {
			return 0, 0, err
		}
	}
	after, err := c.server.Counters(ctx)
	if err != nil {
		return 0, 0, err
	}
	used := after.Since(before)
	share := used.Duration().Seconds() / c.idle.Duration().Seconds()
	busy := used.APIServer - c.scrape.APIServer - time.Duration(share*float64(c.idle.APIServer))
	return busy.Seconds() * 1000 / float64(n), (used.WAL - share*c.idle.WAL) / float64(n), nil
}

// stride has no common divisor with the numbers of pods, and leads to another slice.
const stride = 31

// pick returns the next pod and its agent.
func (w *way) pick() (agent *fixture.Agent, pod int) {
	perNode := len(w.agents[0].Pods)
	i := w.next * stride % (perNode * len(w.agents))
	w.next++
	return w.agents[i/perNode], i % perNode
}

// transition changes the state of the next pod and waits until a watch shows the label.
func (c *costs) transition(ctx context.Context, w *way) error {
	agent, pod := w.pick()
	value := agent.Toggle(pod)
	marked := c.watch.Expect(fixture.Mark, value, agent.Pods[pod].Name)
	var err error
	if w.whole {
		err = agent.WriteStatus(ctx)
	} else {
		err = agent.Write(ctx, agent.SliceOf(pod))
	}
	if err == nil {
		_, err = marked(ctx)
	}
	return err
}

// bareWrite writes the label of the next pod and waits until a watch shows it.
func (c *costs) bareWrite(ctx context.Context, w *way) error {
	agent, i := w.pick()
	pod := agent.Pods[i]
	c.writes++
	value := fmt.Sprint(c.writes)
	seen := c.watch.Expect(fixture.BareLabel, value, pod.Name)
	if err := c.bare.Write(ctx, pod.Name, types.UID(pod.UID), value); err != nil {
		return err
	}
	_, err := seen(ctx)
	return err
}
