// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"time"

	"github.com/seamark-dev/seamark/internal/probing/pace"
)

// slowedFor is how long a probe counts as slowed after its last run that was: if the rate is exceeded by
// little, not every run is late.
const slowedFor = time.Minute

// slowed is how a probe was slowed last.
type slowed struct {
	by    pace.Limit
	until time.Time
}

// paced is since when a probe waits in the pacer, and for which namespace. It is zero if it does not.
type paced struct {
	since     time.Time
	namespace string
}

func (p paced) waits() bool { return !p.since.IsZero() }

// leave ends the wait for a rate. If it took a period or longer, the probe has missed a run, and leave
// returns the limit.
func (e *entry) leave(now time.Time, limit pace.Limit) pace.Limit {
	waited := now.Sub(e.paced.since)
	e.paced = paced{}
	if waited < e.period() {
		return ""
	}
	e.slowed = slowed{by: limit, until: now.Add(slowedFor)}
	return limit
}

// count notes what the first request of a run costs, and returns the function that does so for the others.
func (f *flight) count(cost int) func(tls bool) {
	f.cost.Store(int64(cost))
	return func(tls bool) {
		if tls {
			f.cost.Add(pace.CostTLS)
			return
		}
		f.cost.Add(int64(cost))
	}
}

// spent notes what a run has cost, which the next one counts as: the number of requests depends on the
// server. An earlier run that cost more is forgotten by half, so that a server cannot alternate.
func (e *entry) spent(cost int) { e.cost = max(cost, e.cost/2) }

// messageSlowed says which rate slows a probe.
func messageSlowed(by pace.Limit, limits pace.Limits) string {
	if by == pace.LimitPod {
		return fmt.Sprintf(
			"the probe runs less often than its period: the probes of the pod exceed %d TCP probes per second, an eighth of probeRate", limits.Pod,
		)
	}
	return fmt.Sprintf(
		"the probe runs less often than its period: the probes of the node exceed probeRate, %d TCP probes per second, which namespaces and pods share",
		limits.Node,
	)
}
