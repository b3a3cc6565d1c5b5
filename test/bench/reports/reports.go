// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports measures what a report costs, and how long it takes until the pod is marked.
package reports

import "github.com/seamark-dev/seamark/test/bench/harness"

// Measures returns the measures in the order of the page.
func Measures() []harness.Measure {
	return []harness.Measure{
		{Name: "reports/cost", Rows: costRows(), Charts: []string{cpuChart, bytesChart}, Run: measureCosts},
		{Name: "reports/latency", Rows: latencyRows(), Charts: []string{latencyChart}, Run: measureLatency},
		{Name: "reports/burst", Rows: burstRows(), Charts: []string{burstChart}, Run: measureBurst},
		{Name: "reports/idle", Rows: idleRows(), Run: measureIdle},
	}
}
