// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak

import "time"

// Phase is the position of a probe's runs within its period. Without it, probes that become
// due at the same time, such as those of a marker that selects many running pods, would run
// at the same instants forever.
//
// The zero Phase has no position of its own: the runs follow the first one.
type Phase struct {
	// Origin is any time, the same for all probes of a process. Its wall clock reading
	// makes the position survive restarts. Its monotonic clock reading protects the
	// schedule from a wall clock that is set later.
	Origin time.Time
	// Offset is the position as a fraction of the period, in [0, 1).
	Offset float64
}

// until returns the time from t to the next run in the phase, less than a period.
func (p Phase) until(t time.Time, period time.Duration) time.Duration {
	if p.Origin.IsZero() {
		return 0
	}
	first := time.Duration(p.Offset*float64(period)) - time.Duration(p.Origin.UnixNano()%int64(period))
	wait := (first - t.Sub(p.Origin)) % period
	if wait < 0 {
		wait += period
	}
	return wait
}

// approach returns the time to add to t, when the next run would be due, so that the runs
// reach the phase after a few periods. It never shortens a period, because thresholds count
// on it, and extends it by at most half.
func (p Phase) approach(t time.Time, period time.Duration) time.Duration {
	const last = 8 // Parts of a period that are added in one step.
	wait := p.until(t, period)
	if wait <= period/last {
		return wait
	}
	return wait / 2
}
