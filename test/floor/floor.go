// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package floor compares a benchmark with a lower bound for its work, measured on the same
// machine at the same time, because only their ratio is comparable between machines.
package floor

import (
	"testing"
	"time"
)

// Compare benchmarks work, and then runs floor the same number of times. It reports the time of
// work divided by that of floor as the metric unit.
func Compare(b *testing.B, unit string, work, floor func()) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		work()
	}
	took := b.Elapsed()
	start := time.Now()
	for range b.N {
		floor()
	}
	b.ReportMetric(float64(took)/float64(time.Since(start)), unit)
}
