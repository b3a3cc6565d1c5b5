// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/bench/page"
	"github.com/seamark-dev/seamark/test/chaos/report"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// soakPods is the number of pods without a set, on one node, with three probes each.
	soakPods = 100
	// sampleTime is the time between two samples of the programs.
	sampleTime = 10 * time.Second
	// curvePoints is the number of points of a drawn curve.
	curvePoints = 20
)

// quantity is what the soak test samples of a program.
type quantity struct {
	title, unit string
	// allowance is the growth over half of the run that is not a leak, in addition to noise.
	allowance float64
	of        func(usage, string) float64
}

func quantities() []quantity {
	return []quantity{
		{"memory", "MiB", 16, func(u usage, name string) float64 { return float64(u[name].RSS) / (1 << 20) }},
		{"goroutines", "goroutines", 20, func(u usage, name string) float64 { return float64(u[name].Goroutines) }},
		{"file descriptors", "descriptors", 10, func(u usage, name string) float64 { return float64(u[name].Descriptors) }},
		{"threads", "threads", 6, func(u usage, name string) float64 { return float64(u[name].Threads) }},
	}
}

// TestSoak churns pods for long, and fails if a program grows.
func TestSoak(t *testing.T) {
	s := newSettings(t)
	if os.Getenv(sizeVariable) != "full" {
		t.Skip("a short run does not show growth: run `make soak`")
	}
	w := newWorld(t, s.seed)
	var err error
	w.users, err = newUsers(t.Context(), w)
	w.must(err)
	w.users.least, w.users.most, w.users.nodes = soakPods-10, soakPods, w.nodes[:1]
	for len(w.users.bare) < soakPods {
		w.must(w.users.create(t.Context()))
	}
	expect.NoError(t, w.settle(t.Context()))
	w.watch.take()
	w.watch.settle()
	minutes, samples := w.soak(t.Context(), s)
	if err := w.settle(t.Context()); err != nil {
		t.Errorf("at the end: %v", err)
	}
	worst, where, problems := w.watch.take()
	for _, problem := range append(problems, w.ledger.Violations()...) {
		t.Error(problem)
	}
	t.Logf("seed %d, %s, wrong for longest: %s (%s), deletions of pods: %v", s.seed, s.duration, worst.Round(time.Millisecond), where, w.ledger.Causes())
	w.evaluate(minutes, samples)
	w.writeBlock("soak", fmt.Sprintf("Seed %d, %s, %d pods without a set, commit %s.\n", s.seed, s.duration, soakPods, w.machine().Commit)+
		page.Curves(charts(minutes, samples)))
}

// soak lets users act until the time is over, and samples the programs.
func (w *world) soak(ctx context.Context, s settings) (minutes []float64, samples []usage) {
	w.Helper()
	random := rand.New(rand.NewPCG(s.seed, 3))
	start := time.Now()
	next := start
	for time.Since(start) < s.duration {
		w.must(w.users.act(ctx, random, 1, true))
		linger(ctx, time.Second)
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(sampleTime)
		sample, err := w.use(ctx)
		w.must(err)
		minutes, samples = append(minutes, time.Since(start).Minutes()), append(samples, sample)
	}
	return minutes, samples
}

// evaluate fails the test if a quantity grows in the second half of the run.
func (w *world) evaluate(minutes []float64, samples []usage) {
	w.Helper()
	half := len(minutes) / 2
	if len(minutes)-half < 6 {
		w.Fatalf("%d samples are too few: run for longer", len(minutes))
	}
	for _, name := range []string{managerName, agentName, workloadsName} {
		for _, q := range quantities() {
			var values []float64
			for _, sample := range samples[half:] {
				values = append(values, q.of(sample, name))
			}
			growth, tooMuch := report.Growth(minutes[half:], values, q.allowance)
			w.Logf("%s: %s at the end %.0f, growth in the second half %.1f", name, q.title, values[len(values)-1], growth)
			if tooMuch {
				w.Errorf("%s: %s grow by %.1f %s in %.0f minutes: %.0f", name, q.title, growth, q.unit, minutes[len(minutes)-1]-minutes[half], values)
			}
		}
	}
}

// charts draws the quantities, and the writes per minute.
func charts(minutes []float64, samples []usage) []harness.Chart {
	names := []string{managerName, agentName, workloadsName}
	var all []harness.Chart
	step := max(1, len(minutes)/curvePoints)
	for _, q := range quantities() {
		chart := harness.NewChart(q.title, "minutes", q.unit, names...)
		for i := 0; i < len(minutes); i += step {
			chart.Add(minutes[i], q.of(samples[i], managerName), q.of(samples[i], agentName), q.of(samples[i], workloadsName))
		}
		all = append(all, chart)
	}
	chart := harness.NewChart("writes to the API server", "minutes", "writes per minute", names...)
	for i := step; i < len(minutes); i += step {
		rate := func(name string) float64 {
			return (samples[i][name].Writes - samples[i-step][name].Writes) / (minutes[i] - minutes[i-step])
		}
		chart.Add(minutes[i], rate(managerName), rate(agentName), rate(workloadsName))
	}
	return append(all, chart)
}
