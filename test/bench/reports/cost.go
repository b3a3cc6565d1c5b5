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

// way is one way to report from one node.
type way struct {
	pods, perSlice int
	// whole reports all states in the status of the NodePodProbe.
	whole bool

	agent *fixture.Agent
	uids  []types.UID
	next  int
	// cpu and bytes are the processor time in ms and the bytes per transition, of each round.
	cpu, bytes []float64
}

func (w *way) name() string {
	if w.whole {
		return fmt.Sprintf("whole-%d", w.pods)
	}
	return fmt.Sprintf("slices-%d-%d", w.perSlice, w.pods)
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
	var ways []*way
	for _, n := range sizes() {
		ways = append(ways, &way{pods: n, perSlice: defaultSlice}, &way{pods: n, whole: true})
	}
	ways = append(ways, &way{pods: largest, perSlice: 4}, &way{pods: largest, perSlice: 16})
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

// podsOf returns how many pods the node of a way has. A quick run has small nodes.
func (c *costs) podsOf(w *way) int { return harness.Pick(c.run, w.pods, 2) }

// setUp creates the nodes and pods of all ways, and reports from all of them.
func (c *costs) setUp(ctx context.Context, ways []*way) error {
	for _, w := range ways {
		name := w.name()
		if err := fixture.Node(ctx, c.server.Client, name); err != nil {
			return err
		}
		if err := fixture.Marker(ctx, c.server.Client, name, nil, 0); err != nil {
			return err
		}
		_, err := fixture.Pods(ctx, c.server.Client, c.podsOf(w), func(i int) *corev1.Pod {
			return fixture.Pod(fmt.Sprintf("%s-5d8f7c9b6d-%05d", name, i), name, name, fmt.Sprintf("10.0.0.%d", i+1))
		})
		if err != nil {
			return err
		}
		plan, err := fixture.Planned(ctx, c.server.Client, name, c.podsOf(w))
		if err != nil {
			return err
		}
		if w.agent, err = fixture.NewAgent(ctx, c.server, plan, max(w.perSlice, 1)); err != nil {
			return err
		}
	}
	var err error
	if c.watch, err = fixture.NewWatch(ctx, c.server.Client); err != nil {
		return err
	}
	for _, w := range ways {
		var names []string
		for _, pod := range w.agent.Pods {
			names = append(names, pod.Name)
			w.uids = append(w.uids, types.UID(pod.UID))
			if err := c.bare.Write(ctx, pod.Name, types.UID(pod.UID), "0"); err != nil {
				return err
			}
		}
		marked := c.watch.Expect(fixture.Mark, fixture.Up, names...)
		if w.whole {
			err = w.agent.WriteStatus(ctx)
		} else {
			err = w.agent.TakeOver(ctx)
		}
		if err != nil {
			return err
		}
		if _, err := marked(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.name(), err)
		}
	}
	return nil
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

// transition changes the state of the next pod and waits until a watch shows the label.
func (c *costs) transition(ctx context.Context, w *way) error {
	// Subsequent pods are in different slices.
	pod := w.next * defaultStride % len(w.agent.Pods)
	w.next++
	value := w.agent.Toggle(pod)
	marked := c.watch.Expect(fixture.Mark, value, w.agent.Pods[pod].Name)
	var err error
	if w.whole {
		err = w.agent.WriteStatus(ctx)
	} else {
		err = w.agent.Write(ctx, w.agent.SliceOf(pod))
	}
	if err == nil {
		_, err = marked(ctx)
	}
	return err
}

// defaultStride has no common divisor with the sizes of the nodes.
const defaultStride = 37

// bareWrite writes the label of the next pod and waits until a watch shows it.
func (c *costs) bareWrite(ctx context.Context, w *way) error {
	pod := w.next * defaultStride % len(w.agent.Pods)
	w.next++
	c.writes++
	value := fmt.Sprint(c.writes)
	seen := c.watch.Expect(fixture.BareLabel, value, w.agent.Pods[pod].Name)
	if err := c.bare.Write(ctx, w.agent.Pods[pod].Name, w.uids[pod], value); err != nil {
		return err
	}
	_, err := seen(ctx)
	return err
}
