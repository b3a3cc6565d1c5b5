// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const programName = "seamark-agent"

// simulated measures the agent's program with a real API server, and a container runtime and
// servers in another process.
func simulated() harness.Measure {
	return harness.Measure{
		Name: "agent/resources",
		Rows: rows(),
		Run:  runSimulated,
	}
}

// bench is one run of the measure.
type bench struct {
	*harness.Run

	server *harness.Server
	peer   *peer
	agent  *harness.Program
	pods   int
	period time.Duration
	settle time.Duration
}

func runSimulated(ctx context.Context, r *harness.Run) (harness.Output, error) {
	b := &bench{
		Run: r, pods: harness.Pick(r, maxPods, 30), period: harness.Pick(r, 30*time.Second, 3*time.Second), //nolint:mnd // sizes
		settle: harness.Pick(r, settle, time.Second),
	}
	var err error
	if b.server, err = r.Server(ctx); err != nil {
		return harness.Output{}, err
	}
	if err := createPlan(ctx, b.server.Client); err != nil {
		return harness.Output{}, err
	}
	if b.peer, err = startPeer(ctx, filepath.Join(r.Dir, "cri.sock"), b.pods); err != nil {
		return harness.Output{}, err
	}
	r.OnEnd(b.peer.stop)
	if b.agent, err = b.server.Agent(ctx, nodeName, b.peer.socket); err != nil {
		return harness.Output{}, err
	}
	return b.measure(ctx)
}

// under measures the agent under a plan with the probes, and their floors at the same time.
func (b *bench) under(ctx context.Context, probes ...planned) (load, error) {
	if err := writePlan(ctx, b.server.Client, planOf(b.pods, b.peer.ready, probes...)); err != nil {
		return load{}, err
	}
	if err := settled(ctx, b.agent, b.pods*len(probes), b.settle); err != nil {
		return load{}, err
	}
	l := load{floors: map[probe.Handler]time.Duration{}}
	floors := measureFloors(l.floors, probes, func(p planned) (time.Duration, error) {
		return b.peer.floor(ctx, p.floor, p.rate(b.pods), b.period)
	})
	calls, err := b.peer.calls()
	if err != nil {
		return load{}, err
	}
	before, err := b.server.Counters(ctx)
	if err != nil {
		return load{}, err
	}
	if l.interval, err = watch(ctx, b.agent, b.period); err != nil {
		return load{}, err
	}
	after, err := b.server.Counters(ctx)
	if err != nil {
		return load{}, err
	}
	// The counts of the servers replace those of the agent.
	l.writes = float64(after.Since(before).Requests.Count(ofAgent))
	now, err := b.peer.calls()
	if err != nil {
		return load{}, err
	}
	for method, n := range now {
		l.calls[method] = float64(n - calls[method])
	}
	err = floors()
	b.Log("%s", l)
	return l, err
}

// measure measures the agent under each load, and records a profile under all probes.
func (b *bench) measure(ctx context.Context) (harness.Output, error) {
	m, err := measure(b.period, b.pods, func(probes ...planned) (load, error) { return b.under(ctx, probes...) })
	if err != nil {
		return harness.Output{}, err
	}
	out := m.output()
	profiles, err := b.server.Profiled(ctx, b.period/2, map[string]*harness.Program{programName: b.agent}, idle) //nolint:mnd // shorter
	for _, p := range profiles {
		if p.Program == programName {
			out.Profiles = append(out.Profiles, p)
		}
	}
	return out, err
}

// ofAgent reports whether a request is a write that an agent may make.
func ofAgent(r env.Request) bool {
	if !r.IsWrite() {
		return false
	}
	return slices.Contains([]string{"nodepodprobes", "probereports", "events"}, r.Resource)
}

func idle(ctx context.Context) error { return harness.Idle(ctx, time.Second) }
