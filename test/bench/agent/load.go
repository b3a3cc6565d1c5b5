// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/nodeload"
)

// reading is what an agent has done since its start.
type reading struct {
	usage harness.Usage
	// runs has the finished runs by handler, failed those that did not succeed.
	runs   map[probe.Handler]float64
	failed float64
	// calls has the calls of the container runtime by method.
	calls map[string]float64
	// writes is how many reports and events were written.
	writes float64
	// heap is the part of the Go heap in use, in bytes.
	heap, goroutines float64
}

// read reads the agent's usage and metrics.
func read(ctx context.Context, p *harness.Program) (reading, error) {
	r := reading{runs: map[probe.Handler]float64{}, calls: map[string]float64{}}
	var err error
	if r.usage, err = p.Usage(); err != nil {
		return r, err
	}
	families, err := p.Families(ctx)
	if err != nil {
		return r, err
	}
	each(families, "seamark_agent_probes_total", func(labels map[string]string, n float64) {
		r.runs[probe.Handler(labels["handler"])] += n
		if labels["result"] != "success" {
			r.failed += n
		}
	})
	each(families, "seamark_agent_runtime_calls_total", func(labels map[string]string, n float64) {
		r.calls[labels["method"]] += n
	})
	for _, name := range []string{"seamark_agent_report_writes_total", "seamark_agent_events_total"} {
		each(families, name, func(_ map[string]string, n float64) { r.writes += n })
	}
	if r.heap, err = p.Total(ctx, "go_memstats_heap_inuse_bytes"); err != nil {
		return r, err
	}
	r.goroutines, err = p.Total(ctx, "go_goroutines")
	return r, err
}

// each passes the series of a counter to use.
func each(families map[string]*dto.MetricFamily, name string, use func(labels map[string]string, value float64)) {
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		use(labels, metric.GetCounter().GetValue())
	}
}

// interval is what an agent did in an interval.
type interval struct {
	cpu    time.Duration
	runs   map[probe.Handler]float64
	calls  map[string]float64
	failed float64
	writes float64
	// after is the reading at the end.
	after reading
}

func (r reading) since(before reading) interval {
	i := interval{
		cpu: r.usage.CPU - before.usage.CPU, failed: r.failed - before.failed, writes: r.writes - before.writes, after: r,
		runs: map[probe.Handler]float64{}, calls: map[string]float64{},
	}
	for handler, n := range r.runs {
		i.runs[handler] = n - before.runs[handler]
	}
	for method, n := range r.calls {
		i.calls[method] = n - before.calls[method]
	}
	return i
}

// others returns the number of runtime calls, except lists of all containers: the agent requests
// one per minute, whatever it probes.
func (i interval) others() float64 {
	total := 0.0
	for method, n := range i.calls {
		if method != nodeload.ListMethod {
			total += n
		}
	}
	return total
}

// network returns the number of network probes.
func (i interval) network() float64 { return i.runs[probe.HandlerTCP] + i.runs[probe.HandlerHTTP] }

// settled waits until the agent runs a plan of that many probes and has run them.
func settled(ctx context.Context, p *harness.Program, probes int, wait time.Duration) error {
	what := fmt.Sprintf("the agent runs %d probes", probes)
	err := harness.Until(ctx, what, time.Second, func(ctx context.Context) (bool, error) {
		n, err := p.Total(ctx, "seamark_agent_planned_probes")
		return err == nil && n == float64(probes), nil
	})
	if err != nil {
		return err
	}
	return harness.Idle(ctx, wait)
}

// watch measures an agent for a time.
func watch(ctx context.Context, p *harness.Program, period time.Duration) (interval, error) {
	before, err := read(ctx, p)
	if err != nil {
		return interval{}, err
	}
	if err := harness.Idle(ctx, period); err != nil {
		return interval{}, err
	}
	after, err := read(ctx, p)
	return after.since(before), err
}
