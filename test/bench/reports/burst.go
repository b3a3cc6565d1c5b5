// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	burstChart  = "burst"
	burstRow    = "3,000 pods on 100 nodes report at once: writes of reports and pods per second until all are labelled"
	labelledRow = "the same: labelled pods per second"

	// markConcurrency is that of the manager's controller of marks, by default.
	markConcurrency = 32
	// reportConcurrency is how many slices an agent writes at a time.
	reportConcurrency = 4
)

func burstRows() []string { return []string{burstRow, labelledRow} }

// burst is a cluster in which all pods change at the same time.
type burst struct {
	run    *harness.Run
	watch  *fixture.Watch
	bare   *fixture.Bare
	agents []*fixture.Agent
	pods   []string
	uids   []types.UID
}

func measureBurst(ctx context.Context, r *harness.Run) (harness.Output, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	manager, err := server.Manager(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	b := &burst{run: r}
	if err := b.setUp(ctx, server, harness.Pick(r, 100, 5), harness.Pick(r, 30, 10), harness.Pick(r, 10, 2)); err != nil {
		return harness.Output{}, err
	}
	var written, labelled, bare []float64
	var curve, bareCurve []time.Duration
	for round := range harness.Pick(r, 5, 1) {
		took, err := b.bareAll(ctx, fmt.Sprint(round+1))
		if err != nil {
			return harness.Output{}, err
		}
		bareCurve = took
		bare = append(bare, float64(len(took))/last(took).Seconds())
		reports, took, err := b.reportAll(ctx)
		if err != nil {
			return harness.Output{}, err
		}
		curve = took
		written = append(written, float64(reports+len(took))/last(took).Seconds())
		labelled = append(labelled, float64(len(took))/last(took).Seconds())
		r.Log("round %d: bare %.0f/s, labelled %.0f/s, with reports %.0f/s", round+1, bare[round], labelled[round], written[round])
	}
	out := burstOutput(written, labelled, bare, curve, bareCurve)
	out.Profiles, err = server.Profiled(ctx, harness.Pick(r, 10*time.Second, time.Second), map[string]*harness.Program{"seamark-manager": manager},
		func(ctx context.Context) error {
			_, _, err := b.reportAll(ctx)
			return err
		})
	return out, err
}

func last(d []time.Duration) time.Duration { return d[len(d)-1] }

func (b *burst) setUp(ctx context.Context, server *harness.Server, nodes, perNode, markers int) error {
	for i := range markers {
		if err := fixture.Marker(ctx, server.Client, fmt.Sprintf("marker-%02d", i), nil, 0); err != nil {
			return err
		}
	}
	node := func(i int) string { return fmt.Sprintf("node-%03d", i) }
	for i := range nodes {
		if err := fixture.Node(ctx, server.Client, node(i)); err != nil {
			return err
		}
	}
	if _, err := fixture.Pods(ctx, server.Client, nodes*perNode, func(i int) *corev1.Pod {
		return fixture.Pod(fmt.Sprintf("workload-5d8f7c9b6d-%05d", i), node(i%nodes), fmt.Sprintf("marker-%02d", i%markers),
			fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
	}); err != nil {
		return err
	}
	b.run.Log("%d pods exist", nodes*perNode)
	var err error
	if b.bare, err = fixture.NewBare(ctx, server); err != nil {
		return err
	}
	for i := range nodes {
		plan, err := fixture.Planned(ctx, server.Client, node(i), perNode)
		if err != nil {
			return err
		}
		agent, err := fixture.NewAgent(ctx, server, plan, defaultSlice)
		if err != nil {
			return err
		}
		b.agents = append(b.agents, agent)
		for _, pod := range agent.Pods {
			b.pods, b.uids = append(b.pods, pod.Name), append(b.uids, types.UID(pod.UID))
		}
	}
	if b.watch, err = fixture.NewWatch(ctx, server.Client); err != nil {
		return err
	}
	marked := b.watch.Expect(fixture.Mark, fixture.Up, b.pods...)
	if err := harness.Each(ctx, len(b.agents), 16, func(ctx context.Context, i int) error { return b.agents[i].TakeOver(ctx) }); err != nil {
		return err
	}
	_, err = marked(ctx)
	b.run.Log("all pods are marked")
	return err
}

// reportAll changes the states of all pods. All agents report at the same time. It returns the
// number of reports, and when each label was seen.
func (b *burst) reportAll(ctx context.Context) (reports int, took []time.Duration, err error) {
	value := ""
	for _, agent := range b.agents {
		for i := range agent.Pods {
			value = agent.Toggle(i)
		}
		reports += agent.Slices()
	}
	marked := b.watch.Expect(fixture.Mark, value, b.pods...)
	start := time.Now()
	group, writing := errgroup.WithContext(ctx)
	for _, agent := range b.agents {
		group.Go(func() error {
			return harness.Each(writing, agent.Slices(), reportConcurrency, agent.Write)
		})
	}
	if err := group.Wait(); err != nil {
		return 0, nil, err //nolint:wrapcheck // Write describes it.
	}
	seen, err := marked(ctx)
	return reports, since(start, seen), err
}

// bareAll writes a label of all pods, as many at a time as the manager does.
func (b *burst) bareAll(ctx context.Context, value string) ([]time.Duration, error) {
	marked := b.watch.Expect(fixture.BareLabel, value, b.pods...)
	start := time.Now()
	err := harness.Each(ctx, len(b.pods), markConcurrency, func(ctx context.Context, i int) error {
		return b.bare.Write(ctx, b.pods[i], b.uids[i], value)
	})
	if err != nil {
		return nil, err
	}
	seen, err := marked(ctx)
	return since(start, seen), err
}

func since(start time.Time, seen []time.Time) []time.Duration {
	out := make([]time.Duration, len(seen))
	for i, at := range seen {
		out[i] = at.Sub(start)
	}
	return out
}

func burstOutput(written, labelled, bare []float64, curve, bareCurve []time.Duration) harness.Output {
	floor, _ := harness.Mean(bare)
	rate := func(name string, values []float64) harness.Result {
		mean, noise := harness.Mean(values)
		return harness.Result{Name: name, Value: mean, Unit: "/s", Noise: noise, Floor: floor, FloorName: "bare applies with the manager's concurrency"}
	}
	all := rate(burstRow, written)
	all.Budget = harness.RatioAtLeast(0.8)
	series := func(label string, times []time.Duration, dashed bool) harness.Series {
		s := harness.Series{Label: label, Dashed: dashed}
		for i := 0; i < len(times); i += max(1, len(times)/60) {
			s.Points = append(s.Points, harness.Point{X: times[i].Seconds(), Y: float64(i + 1)})
		}
		return s
	}
	return harness.Output{
		Results: []harness.Result{all, rate(labelledRow, labelled)},
		Charts: []harness.Chart{{
			Name: burstChart, Title: "All pods report at once", X: "seconds since the first report or write", Y: "labelled pods",
			Series: []harness.Series{series("reports of all pods", curve, false), series("bare applies", bareCurve, true)},
		}},
	}
}
