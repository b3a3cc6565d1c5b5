// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestResults checks what is divided by what.
func TestResults(t *testing.T) {
	cost := map[probing.Handler]time.Duration{
		probing.HandlerTCP: time.Millisecond, probing.HandlerHTTP: 2 * time.Millisecond, probing.HandlerExec: 5 * time.Millisecond,
	}
	out := measure(time.Minute, maxPods, func(probes ...planned) load {
		// 10 ms besides the probes.
		l := newLoad()
		l.cpu, l.usage = 10*time.Millisecond, harness.Usage{RSS: 30 << 20, Anonymous: 10 << 20}
		for _, p := range probes {
			l.runs[p.handler], l.floors[p.handler] = 100, time.Millisecond
			l.cpu += 100 * cost[p.handler]
			if p.handler == probing.HandlerExec {
				l.calls = 100
			}
		}
		return l
	}).output()
	expect.Success(t, Measures()[0].Check(out))
	var got []string
	for _, r := range out.Results {
		got = append(got, fmt.Sprintf("%s: %.2f %s, %.2f ×", r.Name, r.Value, r.Unit, r.Ratio()))
	}
	want := []string{
		"memory (RSS): 30.00 MiB, 0.00 ×",
		"processor time per network probe: 1.50 ms, 1.50 ×",
		"processor time per TCP probe: 1.00 ms, 1.00 ×",
		"processor time per HTTP probe: 2.00 ms, 2.00 ×",
		"processor time per exec probe: 5.00 ms, 5.00 ×",
		"runtime calls for network probes: 0.00 , 0.00 ×",
		"runtime calls per exec probe: 1.00 , 0.00 ×",
		"one TCP probe per pod, 10 times per second: part of a processor: 0.17 %, 0.00 ×",
	}
	expect.Equal(t, "results", want, got)
}
