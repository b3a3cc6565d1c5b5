// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	idleRow    = "writes without a change"
	restartRow = "writes of a restart of the manager and the agent"
)

func idleRows() []string { return []string{idleRow, restartRow} }

// ours reports whether a request is a write of an object that Seamark writes. Leases and the API
// server's own objects are not.
func ours(r env.Request) bool {
	return r.IsWrite() && slices.Contains([]string{"pods", "nodepodprobes", "probereports", "podprobemarkers", "events", "nodes"}, r.Resource)
}

// measureIdle counts the writes while nothing changes: before and after the programs are started
// again, and of the start itself.
func measureIdle(ctx context.Context, r *harness.Run) (harness.Output, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return harness.Output{}, err
	}
	n := harness.Pick(r, largest, 10)
	l := newLatencies(r, n)
	if err := l.setUp(ctx, server, n); err != nil {
		return harness.Output{}, err
	}
	// The agent reports what it has in force at the latest after ten seconds.
	if err := harness.Idle(ctx, harness.Pick(r, 15*time.Second, 2*time.Second)); err != nil {
		return harness.Output{}, err
	}
	period := harness.Pick(r, 50*time.Second, 3*time.Second)
	first, err := count(ctx, server, func() error { return l.idle(ctx, period) })
	if err != nil {
		return harness.Output{}, err
	}
	restart, err := count(ctx, server, func() error { return l.restart(ctx) })
	if err != nil {
		return harness.Output{}, err
	}
	second, err := count(ctx, server, func() error { return l.idle(ctx, period) })
	if err != nil {
		return harness.Output{}, err
	}
	idle := first.Count(ours) + second.Count(ours)
	return harness.Output{
		Results: []harness.Result{
			{Name: idleRow, Value: float64(idle), Budget: harness.AtMost(0), Note: listed(first, second)},
			{Name: restartRow, Value: float64(restart.Count(ours)), Budget: harness.AtMost(0), Note: listed(restart)},
		},
		Notes: []string{fmt.Sprintf("Counted for %.0f s before and %.0f s after the restarts, with %d pods that are probed every second.",
			period.Seconds(), period.Seconds(), n)},
	}, nil
}

// count returns the requests that the API server handles during work.
func count(ctx context.Context, server *harness.Server, work func() error) (env.Requests, error) {
	before, err := server.Counters(ctx)
	if err != nil {
		return nil, err
	}
	if err := work(); err != nil {
		return nil, err
	}
	// The API server counts a request after its response.
	if err := harness.Idle(ctx, 100*time.Millisecond); err != nil {
		return nil, err
	}
	after, err := server.Counters(ctx)
	if err != nil {
		return nil, err
	}
	return after.Since(before).Requests, nil
}

// idle waits, and returns an error if the programs do not run or the agent does not probe: they
// would not write either.
func (l *latencies) idle(ctx context.Context, period time.Duration) error {
	const runs = "seamark_agent_probes_total"
	before, err := l.agent.Total(ctx, runs)
	if err != nil {
		return err
	}
	if err := harness.Idle(ctx, period); err != nil {
		return err
	}
	after, err := l.agent.Total(ctx, runs)
	if err != nil {
		return err
	}
	if n := after - before; n < float64(len(l.pods)) {
		return fmt.Errorf("the agent ran %.0f probes of %d pods in %s, want at least one of each pod", n, len(l.pods), period)
	}
	_, err = l.manager.Families(ctx)
	return err
}

// restart starts the agent and the manager again and waits until they have settled.
func (l *latencies) restart(ctx context.Context) error {
	for _, p := range []*harness.Program{l.agent, l.manager} {
		if err := p.Restart(); err != nil {
			return err
		}
	}
	err := harness.Until(ctx, "the restarted programs run", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		planned, ofAgent := l.agent.Total(ctx, "seamark_agent_planned_probes")
		_, ofManager := l.manager.Families(ctx)
		return ofAgent == nil && ofManager == nil && planned == float64(len(l.pods)), nil
	})
	if err != nil {
		return err
	}
	return harness.Idle(ctx, harness.Pick(l.run, 15*time.Second, 2*time.Second))
}

// listed returns the writes that were counted, as text.
func listed(all ...env.Requests) string {
	counts := map[string]int{}
	for _, requests := range all {
		for request, n := range requests {
			if ours(request) {
				counts[strings.TrimSuffix(request.Verb+" "+request.Resource+"/"+request.Subresource, "/")] += n
			}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, ", ") + "."
}
