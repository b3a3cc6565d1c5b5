// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
)

func TestStop(t *testing.T) {
	cases := map[string]struct {
		prober func(*prober) probe.Prober
		within time.Duration
	}{
		"runs end with their context": {func(p *prober) probe.Prober { return p }, 0},
		"runs ignore their context":   {func(p *prober) probe.Prober { return &stubbornProber{prober: p} }, 2 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchWith(t, tc.prober)
				b.result = slow(time.Hour)
				b.containerRuns("a")
				b.plan(planned("p"), planned("q"), planned("r"))
				pass(time.Second)
				if took := b.stop(); took > tc.within {
					t.Errorf("stopped after %s, want within %s", took, tc.within)
				}
				if len(b.changes) > 0 || b.observed > 0 {
					t.Errorf("cancelled runs caused changes %v, %d observed runs", b.changes, b.observed)
				}
				pass(time.Minute)
			})
		})
	}
}
