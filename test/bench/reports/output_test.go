// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"math"
	"testing"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestOutputs checks what is divided by what, and that all rows exist.
func TestOutputs(t *testing.T) {
	c := &costs{bareCPU: []float64{4, 6}, bareBytes: []float64{5, 5}, ways: ways()}
	for _, w := range c.ways {
		w.cpu, w.bytes = []float64{10, 10}, []float64{9, 9}
	}
	c.ways[2].cpu = []float64{8, 8}
	var took, bare, busy []float64
	for i := range 100 {
		took, bare, busy = append(took, float64(20+i)), append(bare, float64(10+i)), append(busy, float64(50+i))
	}
	outputs := []harness.Output{
		c.output(), latencies{isolated: took, busy: busy, detected: busy, bare: bare}.output(), burstOutput(
			[]float64{170, 190}, []float64{150, 150}, []float64{200, 200},
		),
	}
	got := map[string]harness.Result{}
	for i, out := range outputs {
		expect.Success(t, Measures()[i].Check(out))
		for _, r := range out.Results {
			got[r.Name] = r
		}
	}
	for name, want := range map[string]float64{
		largeRow: 2, growthRow: 1.25, bytesRow: 1.8, p99Row: 118.0 / 108, burstRow: 0.9,
	} {
		if r := got[name]; math.Abs(r.Ratio()-want) > 0.001 || !r.Met() {
			t.Errorf("ratio of %q is %v, met: %v, want %v, met", name, r.Ratio(), r.Met(), want)
		}
	}
}

func TestPickVisitsAllPodsInOtherSlices(t *testing.T) {
	for _, w := range ways(10, 30, 60) {
		for range (largest + w.pods - 1) / w.pods {
			w.agents = append(w.agents, &fixture.Agent{Pods: make([]seamarkv1alpha1.PodReport, w.pods)})
		}
		seen := map[*seamarkv1alpha1.PodReport]bool{}
		total := w.pods * len(w.agents)
		for range total {
			agent, pod := w.pick()
			seen[&agent.Pods[pod]] = true
		}
		if len(seen) != total {
			t.Errorf("%s: %d of %d pods are picked", w.row, len(seen), total)
		}
	}
}
