// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	latencyChart  = "latency"
	bareWriteName = "bare pod write until a watch shows it"
	p50Row        = "answer of a container changes until a watch shows the label, 110 pods on the node, p50"
	p99Row        = "answer of a container changes until a watch shows the label, 110 pods on the node, p99"
	busyP50Row    = "the same while 10 containers per second change, p50"
	busyP99Row    = "the same while 10 containers per second change, p99"

	probePeriod = time.Second
	// apart is more than the agent's interval between reports, so that no report waits.
	apart = 120 * time.Millisecond
)

func latencyRows() []string { return []string{p50Row, p99Row, busyP50Row, busyP99Row} }

// latencies measures the time from the first changed answer of a container to the label.
type latencies struct {
	run    *harness.Run
	pods   []*corev1.Pod
	probed *fixture.Probed
	bare   *fixture.Bare
	watch  *fixture.Watch
	fails  []bool
	// answers has the time of the first answer of each pod after a change.
	answers []chan time.Time
	writes  int

	manager, agent *harness.Program
}

func newLatencies(r *harness.Run, n int) *latencies {
	l := &latencies{run: r, fails: make([]bool, n), answers: make([]chan time.Time, n)}
	for i := range l.answers {
		l.answers[i] = make(chan time.Time, 1)
	}
	return l
}

func measureLatency(ctx context.Context, r *harness.Run) (harness.Output, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	n := harness.Pick(r, largest, 10)
	l := newLatencies(r, n)
	if err := l.setUp(ctx, server, n); err != nil {
		return harness.Output{}, err
	}
	var took, bare []float64
	for i := range harness.Pick(r, 400, 10) {
		for _, measure := range []struct {
			into *[]float64
			do   func(context.Context) (time.Duration, error)
		}{{&took, l.change}, {&bare, l.bareWrite}} {
			duration, err := measure.do(ctx)
			if err != nil {
				return harness.Output{}, err
			}
			*measure.into = append(*measure.into, duration.Seconds()*1000)
		}
		if i%100 == 99 {
			r.Log("%d changes: p50 %.1f ms, bare %.1f ms", i+1, harness.Percentile(took, 0.5), harness.Percentile(bare, 0.5))
		}
	}
	busy, err := l.busy(ctx, harness.Pick(r, 300, 10))
	if err != nil {
		return harness.Output{}, err
	}
	out := latencyOutput(took, bare, busy)
	out.Profiles, err = server.Profiled(ctx, harness.Pick(r, 10*time.Second, time.Second), map[string]*harness.Program{
		"seamark-manager": l.manager, "seamark-agent": l.agent,
	}, func(ctx context.Context) error {
		_, err := l.busy(ctx, 10)
		return err
	})
	return out, err
}

// latencyNode is the name of the node, its marker and its pods.
const latencyNode = "latency"

// setUp starts the node with its agent and the manager, and waits until all pods are marked.
func (l *latencies) setUp(ctx context.Context, server *harness.Server, n int) error {
	probed, err := fixture.NewProbed(l.run, n, l.changed)
	if err != nil {
		return err
	}
	l.probed = probed
	handler := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromInt(probed.Port)}}
	if err := fixture.Node(ctx, server.Client, latencyNode); err != nil {
		return err
	}
	if err := fixture.Marker(ctx, server.Client, latencyNode, &handler, int32(probePeriod.Seconds())); err != nil {
		return err
	}
	if l.pods, err = fixture.Pods(ctx, server.Client, n, func(i int) *corev1.Pod {
		return fixture.Pod(fmt.Sprintf("%s-5d8f7c9b6d-%05d", latencyNode, i), latencyNode, latencyNode, fixture.ProbedIP(i))
	}); err != nil {
		return err
	}
	if l.watch, err = fixture.NewWatch(ctx, server.Client); err != nil {
		return err
	}
	if l.bare, err = fixture.NewBare(ctx, server); err != nil {
		return err
	}
	for _, pod := range l.pods {
		if err := l.bare.Write(ctx, pod.Name, pod.UID, "0"); err != nil {
			return err
		}
	}
	socket, err := fixture.Runtime(l.run, l.pods)
	if err != nil {
		return err
	}
	var names []string
	for _, pod := range l.pods {
		names = append(names, pod.Name)
	}
	marked := l.watch.Expect(fixture.Mark, fixture.Up, names...)
	if l.manager, err = server.Manager(ctx); err != nil {
		return err
	}
	if l.agent, err = server.Agent(ctx, latencyNode, socket); err != nil {
		return err
	}
	if _, err := marked(ctx); err != nil {
		return err
	}
	l.run.Log("%d pods are marked", n)
	// Each probe has run, so the phases are known, and the agent has settled.
	return harness.Idle(ctx, 2*probePeriod)
}

func (l *latencies) changed(pod int, at time.Time) { l.answers[pod] <- at }

// change changes the answer of the pod whose next probe is due first after a pause, and returns
// the time from this probe's answer to the label.
func (l *latencies) change(ctx context.Context) (time.Duration, error) {
	pod, due := l.probed.Next(time.Now().Add(apart), probePeriod)
	if err := harness.Idle(ctx, time.Until(due.Add(-20*time.Millisecond))); err != nil {
		return 0, err
	}
	label := l.toggle(pod)
	seen, err := label(ctx)
	if err != nil {
		return 0, err
	}
	return seen[0].Sub(<-l.answers[pod]), nil
}

// toggle changes the answer of a pod, and returns how to wait for the label that follows.
func (l *latencies) toggle(pod int) func(context.Context) ([]time.Time, error) {
	l.fails[pod] = !l.fails[pod]
	value := fixture.Up
	if l.fails[pod] {
		value = fixture.Down
	}
	label := l.watch.Expect(fixture.Mark, value, l.pods[pod].Name)
	l.probed.Set(pod, l.fails[pod])
	return label
}

// bareWrite returns the time that a bare write of the same kind of pod takes.
func (l *latencies) bareWrite(ctx context.Context) (time.Duration, error) {
	pod := l.pods[l.writes%len(l.pods)]
	l.writes++
	value := fmt.Sprint(l.writes)
	label := l.watch.Expect(fixture.BareLabel, value, pod.Name)
	start := time.Now()
	if err := l.bare.Write(ctx, pod.Name, pod.UID, value); err != nil {
		return 0, err
	}
	seen, err := label(ctx)
	if err != nil {
		return 0, err
	}
	return seen[0].Sub(start), nil
}

// busy changes n pods at random times of their periods, ten per second, and returns the times in
// ms.
func (l *latencies) busy(ctx context.Context, n int) ([]float64, error) {
	took := make([]float64, n)
	done := make([]chan struct{}, len(l.pods))
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		pod := i % len(l.pods)
		if done[pod] != nil {
			// At most one change of a pod is pending.
			<-done[pod]
		}
		done[pod] = make(chan struct{})
		label := l.toggle(pod)
		group.Go(func() error {
			defer close(done[pod])
			seen, err := label(ctx)
			if err == nil {
				took[i] = seen[0].Sub(<-l.answers[pod]).Seconds() * 1000
			}
			return err
		})
		if err := harness.Idle(ctx, 100*time.Millisecond); err != nil {
			break
		}
	}
	return took, group.Wait() //nolint:wrapcheck // Expect describes it.
}

func latencyOutput(took, bare, busy []float64) harness.Output {
	row := func(name string, values []float64, p, limit float64) harness.Result {
		// The quantile's noise is that of its two halves.
		half := len(values) / 2
		first, second := harness.Percentile(values[:half], p), harness.Percentile(values[half:], p)
		r := harness.Result{
			Name: name, Value: harness.Percentile(values, p), Unit: "ms", Noise: math.Abs(first-second) / (first + second),
			Floor: harness.Percentile(bare, p), FloorName: bareWriteName,
		}
		if limit > 0 {
			r.Budget = harness.RatioAtMost(limit)
		}
		return r
	}
	curve := func(label string, values []float64, dashed bool) harness.Series {
		s := harness.Series{Label: label, Dashed: dashed}
		for p := 1; p < 100; p++ {
			s.Points = append(s.Points, harness.Point{X: harness.Percentile(values, float64(p)/100), Y: float64(p)})
		}
		return s
	}
	return harness.Output{
		Results: []harness.Result{row(p50Row, took, 0.5, 3), row(p99Row, took, 0.99, 5), row(busyP50Row, busy, 0.5, 0), row(busyP99Row, busy, 0.99, 0)},
		Charts: []harness.Chart{{
			Name: latencyChart, Title: "Answer of a container changes until a watch shows the label", X: "ms", Y: "share of changes, %",
			Series: []harness.Series{
				curve("isolated changes", took, false), curve("10 changes per second", busy, false), curve("bare pod write", bare, true),
			},
		}},
		Notes: []string{fmt.Sprintf("%d isolated changes, %d bare writes, %d changes on the busy node.", len(took), len(bare), len(busy))},
	}
}
