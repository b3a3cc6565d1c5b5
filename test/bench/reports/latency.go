// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	bareWriteName = "bare pod write until a watch shows it"
	p50Row        = "answer of a container changes until a watch shows the label, 110 pods on the node, p50"
	p99Row        = "answer of a container changes until a watch shows the label, 110 pods on the node, p99"
	busyP50Row    = "the same while 10 containers per second change, p50"
	busyP99Row    = "the same while 10 containers per second change, p99"
	detectP50Row  = "container changes until a watch shows the label, 110 pods probed 10 times per second, p50"
	detectP99Row  = "container changes until a watch shows the label, 110 pods probed 10 times per second, p99"

	// probePeriod is the default of the API, and fastPeriod the shortest one.
	probePeriod = time.Second
	fastPeriod  = 100 * time.Millisecond
	// apart is more than the agent's interval between reports, so that no report waits.
	apart = 120 * time.Millisecond
)

// node is a node whose pods are probed by an agent.
type node struct {
	*harness.Bench
	server *harness.Server
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

// latencies are the measured times, in ms.
type latencies struct {
	// isolated and busy are from the first changed answer to the label.
	isolated, busy []float64
	// detected are from the change of the container to the label.
	detected []float64
	// bare are those of bare writes between isolated changes.
	bare []float64
}

func measureLatency(b *harness.Bench) harness.Output {
	var l latencies
	b.Part("1 probe per second", func(b *harness.Bench) {
		n := newNode(b, probePeriod)
		for i := range harness.Pick(b, 400, 10) {
			l.isolated, l.bare = append(l.isolated, n.change()), append(l.bare, n.bareWrite())
			if i%100 == 99 {
				b.Logf("%d changes: p50 %.1f ms, bare %.1f ms", i+1, harness.Percentile(l.isolated, 0.5), harness.Percentile(l.bare, 0.5))
			}
		}
		for _, took := range n.busy(harness.Pick(b, 300, 10)) {
			l.busy = append(l.busy, took.sinceAnswer)
		}
	})
	b.Part("10 probes per second", func(b *harness.Bench) {
		for _, took := range newNode(b, fastPeriod).busy(harness.Pick(b, 300, 10)) {
			l.detected = append(l.detected, took.sinceChange)
		}
	})
	return l.output()
}

// newNode starts the node with its agent and the manager, and waits until all pods are marked.
func newNode(b *harness.Bench, period time.Duration) *node {
	b.Helper()
	pods := harness.Pick(b, largest, 10)
	n := &node{Bench: b, server: b.Server(), fails: make([]bool, pods)}
	for range pods {
		n.answers = append(n.answers, make(chan time.Time, 1))
	}
	n.probed = fixture.NewProbed(b, pods, func(pod int, at time.Time) { n.answers[pod] <- at })
	cluster := fixture.Cluster{Name: "latency", Nodes: 1, Pods: pods, IP: fixture.ProbedIP}
	fixture.CreateMarker(b, n.server, cluster.Name, func(probe *v1alpha1.PodContainerProbe) {
		probe.Probe.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/state", Port: intstr.FromInt(n.probed.Port)}}
		probe.Probe.PeriodMilliseconds, probe.Probe.TimeoutSeconds = int32(period.Milliseconds()), 1
	})
	n.pods = cluster.Create(b, n.server)
	n.watch, n.bare = fixture.NewWatch(b, n.server), fixture.NewBare(b, n.server)
	runtime := critest.New(b.T, critest.Streamed)
	var names []string
	for _, pod := range n.pods {
		b.Must(n.bare.Write(b.Context(), pod.Name, pod.UID, "0"))
		runtime.Run(runtime.Create(identity.ContainerKey{PodUID: pod.UID, Name: "main"}, 0), time.Now().Add(-time.Hour))
		names = append(names, pod.Name)
	}
	marked := n.watch.Expect(fixture.Mark, fixture.Up, names...)
	n.manager, n.agent = n.server.Manager(), n.server.Agent(cluster.Node(0), runtime.Socket())
	_, err := marked(b.Context())
	b.Must(err)
	// Each probe has run, so the phases are known, and the agent has settled.
	b.Idle(2 * time.Second)
	return n
}

// change changes the answer of the pod whose next probe is due first after a pause, and returns
// the time from this probe's answer to the label, in ms.
func (n *node) change() float64 {
	n.Helper()
	pod, due := n.probed.Next(time.Now().Add(apart), probePeriod)
	n.Idle(time.Until(due.Add(-20 * time.Millisecond)))
	took, err := n.toggle(pod)()
	n.Must(err)
	return took.sinceAnswer
}

// latency is the time until the label, in ms: from the change of the container, and from its first changed
// answer.
type latency struct{ sinceChange, sinceAnswer float64 }

// toggle changes the answer of a pod. It returns a function that waits for the label that follows.
func (n *node) toggle(pod int) func() (latency, error) {
	n.fails[pod] = !n.fails[pod]
	value := fixture.Up
	if n.fails[pod] {
		value = fixture.Down
	}
	label := n.watch.Expect(fixture.Mark, value, n.pods[pod].Name)
	changed := time.Now()
	n.probed.Set(pod, n.fails[pod])
	return func() (latency, error) {
		seen, err := label(n.Context())
		if err != nil {
			return latency{}, err
		}
		since := func(start time.Time) float64 { return seen[0].Sub(start).Seconds() * 1000 }
		return latency{sinceChange: since(changed), sinceAnswer: since(<-n.answers[pod])}, nil
	}
}

// bareWrite returns the time that a bare write of the same kind of pod takes, in ms.
func (n *node) bareWrite() float64 {
	n.Helper()
	pod := n.pods[n.writes%len(n.pods)]
	n.writes++
	value := fmt.Sprint(n.writes)
	label, start := n.watch.Expect(fixture.BareLabel, value, pod.Name), time.Now()
	n.Must(n.bare.Write(n.Context(), pod.Name, pod.UID, value))
	seen, err := label(n.Context())
	n.Must(err)
	return seen[0].Sub(start).Seconds() * 1000
}

// busy changes pods at random times of their periods, ten per second.
func (n *node) busy(changes int) []latency {
	n.Helper()
	took := make([]latency, changes)
	done := make([]chan struct{}, len(n.pods))
	var group errgroup.Group
	for i := range changes {
		pod := i % len(n.pods)
		if done[pod] != nil {
			// At most one change of a pod is pending.
			<-done[pod]
		}
		done[pod] = make(chan struct{})
		wait := n.toggle(pod)
		group.Go(func() (err error) {
			defer close(done[pod])
			took[i], err = wait()
			return err
		})
		n.Idle(100 * time.Millisecond)
	}
	n.Must(group.Wait())
	return took
}

func (l latencies) output() harness.Output {
	row := func(name string, values []float64, p float64, budget *harness.Budget) harness.Result {
		// The quantile's noise is that of its two halves.
		half := len(values) / 2
		first, second := harness.Percentile(values[:half], p), harness.Percentile(values[half:], p)
		return harness.Result{
			Name: name, Value: harness.Percentile(values, p), Unit: "ms", Noise: math.Abs(first-second) / (first + second),
			Floor: harness.Percentile(l.bare, p), FloorName: bareWriteName, Budget: budget,
		}
	}
	chart := harness.NewChart("Answer of a container changes until a watch shows the label", "share of changes, %", "ms",
		"isolated changes", "10 changes per second", "bare pod write")
	for _, percent := range []float64{1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99} {
		p := percent / 100
		chart.Add(percent, harness.Percentile(l.isolated, p), harness.Percentile(l.busy, p), harness.Percentile(l.bare, p))
	}
	return harness.Output{
		Charts: []harness.Chart{chart},
		Results: []harness.Result{
			row(p50Row, l.isolated, 0.5, harness.RatioAtMost(3)), row(p99Row, l.isolated, 0.99, harness.RatioAtMost(5)),
			row(busyP50Row, l.busy, 0.5, nil), row(busyP99Row, l.busy, 0.99, nil),
			row(detectP50Row, l.detected, 0.5, nil), row(detectP99Row, l.detected, 0.99, nil),
		},
		Notes: []string{fmt.Sprintf("%d isolated changes, %d bare writes, %d changes on the busy node. With 10 probes per second, "+
			"%d containers change at random times: the wait for the next probe, 50 ms on average, is included.",
			len(l.isolated), len(l.bare), len(l.busy), len(l.detected))},
	}
}
