// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// TestResults checks what is divided by what.
func TestResults(t *testing.T) {
	const tcp, web, exec = probe.HandlerTCP, probe.HandlerHTTP, probe.HandlerExec
	under := func(probes ...planned) (load, error) {
		// 1 ms per TCP probe, 2 ms per HTTP probe, 5 ms per exec probe, and 10 ms besides.
		l := load{floors: map[probe.Handler]time.Duration{}}
		l.cpu = 10 * time.Millisecond
		l.runs, l.calls = map[probe.Handler]float64{}, map[string]float64{"ListContainers": 1}
		l.after.usage = harness.Usage{RSS: 30 * mebibyte, Anonymous: 10 * mebibyte}
		for _, p := range probes {
			l.runs[p.handler] = 100
			l.cpu += 100 * map[probe.Handler]time.Duration{tcp: time.Millisecond, web: 2 * time.Millisecond, exec: 5 * time.Millisecond}[p.handler]
			l.floors[p.handler] = time.Millisecond
			if p.handler == exec {
				l.calls["ExecSync"] = 100
			}
		}
		return l, nil
	}
	m, err := measure(time.Minute, maxPods, under)
	if err != nil {
		t.Fatal(err)
	}
	out := m.output()
	if err := (harness.Measure{Name: "agent", Rows: rows()}).Check(out); err != nil {
		t.Error(err)
	}
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
		"writes to the API server while no state changes: 0.00 , 0.00 ×",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
