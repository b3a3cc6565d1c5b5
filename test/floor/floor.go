// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package floor sets a benchmark beside the least that its work could cost on the same
// machine at the same moment, since only their ratio means the same everywhere.
package floor

import (
	"testing"
	"time"
)

// Compare benchmarks work, and runs floor as often after it. It reports, under the unit,
// the time of the work divided by that of the floor.
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
