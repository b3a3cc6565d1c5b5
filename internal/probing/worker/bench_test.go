// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// counter is a prober that closes done at the nth run.
type counter struct {
	n    int64
	runs atomic.Int64
	done chan struct{}
}

func (c *counter) Probe(context.Context, probing.Target) (probing.Outcome, error) {
	if c.runs.Add(1) == c.n {
		close(c.done)
	}
	return probing.Outcome{Success: true, Message: "ok"}, nil
}

// discard is a sink that ignores all changes.
type discard struct{}

func (discard) ProbeChanged(worker.Change) {}
func (discard) ProbeGone(identity.Key)     {}

// BenchmarkWorker runs 1,000 probes that are always due, and measures the overhead per run.
// It compares with a plain loop that runs each probe in its own goroutine.
func BenchmarkWorker(b *testing.B) {
	b.ReportAllocs()
	c := &counter{n: int64(b.N), done: make(chan struct{})}
	w := worker.New(worker.Options{
		Prober: c, Sink: discard{}, Observe: func(worker.Run) {}, Phase: worker.PhaseOf, Now: time.Now,
	})
	var probes []worker.Task
	for i := range 1000 {
		probes = append(probes, planned(fmt.Sprintf("p%d", i), period(time.Microsecond)))
	}
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.Run(ctx)
	}()
	w.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: time.Now()})
	w.SetPlan(probes, func() {})
	b.ResetTimer()
	w.ContainersSynced()
	<-c.done
	b.StopTimer()
	cancel()
	<-stopped
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "probes/s")
	b.ReportMetric(float64(b.Elapsed())/float64(plainLoop(b, b.N)), "x_of_plain_loop")
}

// plainLoop returns how long it takes to run n probes one after another.
func plainLoop(b *testing.B, n int) time.Duration {
	b.Helper()
	c := &counter{n: -1}
	target := planned("p").Target
	done := make(chan probing.Outcome)
	start := time.Now()
	for range n {
		go func() {
			outcome, _ := c.Probe(b.Context(), target)
			done <- outcome
		}()
		<-done
	}
	return time.Since(start)
}
