// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	idleRow    = "writes without a change"
	restartRow = "writes of a restart of the manager and the agent"
)

// ours reports whether a request is a write of an object that Seamark writes. Leases and the API
// server's own objects are not.
func ours(r env.Request) bool {
	return r.IsWrite() && slices.Contains([]string{"pods", "nodepodprobes", "probereports", "podprobemarkers", "events", "nodes"}, r.Resource)
}

// measureIdle counts the writes while nothing changes: before and after the programs are started
// again, and of the start itself.
func measureIdle(b *harness.Bench) harness.Output {
	n := newNode(b, probePeriod)
	settle, period := harness.Pick(b, 15*time.Second, 2*time.Second), harness.Pick(b, 50*time.Second, 3*time.Second)
	// The agent reports what it has in force at the latest after ten seconds.
	b.Idle(settle)
	first := n.written(func() { n.idle(period) })
	restart := n.written(func() {
		n.agent.Restart()
		n.manager.Restart()
		n.agent.Runs("seamark_agent_planned_probes", float64(len(n.pods)))
		n.manager.Runs("go_goroutines", 1)
		b.Idle(settle)
	})
	second := n.written(func() { n.idle(period) })
	return harness.Output{
		Results: []harness.Result{
			{Name: idleRow, Value: first + second, Budget: harness.AtMost(0)},
			{Name: restartRow, Value: restart, Budget: harness.AtMost(0)},
		},
		Notes: []string{fmt.Sprintf("Counted for %.0f s before and %.0f s after the restarts, with %d pods that are probed every second.",
			period.Seconds(), period.Seconds(), len(n.pods))},
	}
}

// written returns the number of writes during work, and logs them.
func (n *node) written(work func()) float64 {
	n.Helper()
	requests := n.server.Counted(func() {
		work()
		// The API server counts a request after its response.
		n.Idle(100 * time.Millisecond)
	}).Requests
	for request, count := range requests {
		if ours(request) {
			n.Logf("%d × %+v", count, request)
		}
	}
	return float64(requests.Count(ours))
}

// idle waits. The measure fails if the agent does not probe or the manager does not run: they would
// not write either.
func (n *node) idle(period time.Duration) {
	n.Helper()
	const runs = "seamark_agent_probes_total"
	before, err := n.agent.Total(n.Context(), runs)
	n.Must(err)
	n.Idle(period)
	after, err := n.agent.Total(n.Context(), runs)
	n.Must(err)
	if after-before < float64(len(n.pods)) {
		n.Fatalf("the agent ran %.0f probes of %d pods in %s, want at least one of each pod", after-before, len(n.pods), period)
	}
	_, err = n.manager.Families(n.Context())
	n.Must(err)
}
