// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"math"
	"slices"
	"testing"
	"time"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

func measure(t *testing.T, name string) harness.Measure {
	t.Helper()
	all := Measures()
	return all[slices.IndexFunc(all, func(m harness.Measure) bool { return m.Name == name })]
}

func result(t *testing.T, o harness.Output, name string) harness.Result {
	t.Helper()
	i := slices.IndexFunc(o.Results, func(r harness.Result) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no result %q in %v", name, o.Results)
	}
	return o.Results[i]
}

func TestCostsAreComparedWithBareApplies(t *testing.T) {
	c := &costs{bareCPU: []float64{4, 6}, bareBytes: []float64{5000, 5000}}
	all := ways()
	for _, w := range all {
		w.cpu, w.bytes = []float64{10, 10}, []float64{9000, 9000}
		if w.pods == smallest {
			w.cpu = []float64{8, 8}
		}
		if w.whole {
			w.cpu = []float64{float64(w.pods), float64(w.pods)}
		}
	}
	out := c.output(all)
	if err := measure(t, "reports/cost").Check(out); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{cpuRow(largest): 2, growthRow: 1.25, wholeRow: 22, bytesRow: 1.8} {
		if got := result(t, out, name).Ratio(); math.Abs(got-want) > 0.001 {
			t.Errorf("ratio of %q is %v, want %v", name, got, want)
		}
	}
	if r := result(t, out, bytesRow); r.Value != 9 || r.Unit != "KB" {
		t.Errorf("%q is %v %s, want 9 KB", bytesRow, r.Value, r.Unit)
	}
}

func TestLatencyIsComparedByPercentile(t *testing.T) {
	var took, bare, busy []float64
	for i := range 100 {
		took, bare, busy = append(took, float64(20+i)), append(bare, float64(10+i)), append(busy, float64(50+i))
	}
	out := latencyOutput(took, bare, busy)
	if err := measure(t, "reports/latency").Check(out); err != nil {
		t.Fatal(err)
	}
	if r := result(t, out, p99Row); r.Value != 118 || r.Floor != 108 {
		t.Errorf("p99 is %v with the floor %v, want 118 and 108", r.Value, r.Floor)
	}
}

func TestBurstCountsReports(t *testing.T) {
	times := []time.Duration{time.Second, 2 * time.Second}
	out := burstOutput([]float64{170, 190}, []float64{150, 150}, []float64{200, 200}, times, times)
	if err := measure(t, "reports/burst").Check(out); err != nil {
		t.Fatal(err)
	}
	if r := result(t, out, burstRow); math.Abs(r.Ratio()-0.9) > 0.001 || !r.Met() {
		t.Errorf("ratio is %v, met %v, want 0.9, met", r.Ratio(), r.Met())
	}
}

func TestPickVisitsAllPodsInOtherSlices(t *testing.T) {
	for _, n := range sizes() {
		w := &way{pods: n, perSlice: defaultSlice}
		for range (largest + n - 1) / n {
			w.agents = append(w.agents, &fixture.Agent{Pods: make([]seamarkv1alpha1.PodReport, n)})
		}
		seen := map[*seamarkv1alpha1.PodReport]bool{}
		total := n * len(w.agents)
		for range total {
			agent, pod := w.pick()
			seen[&agent.Pods[pod]] = true
		}
		if len(seen) != total {
			t.Errorf("%d pods per node: %d of %d pods are picked", n, len(seen), total)
		}
	}
}
