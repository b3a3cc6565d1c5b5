// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

func TestUnknownContainerPausesOnlyItsProbes(t *testing.T) {
	other := probeid.ContainerKey{PodUID: "uid", Name: "other"}
	ofOther := func(p *worker.Task) { p.Key.ContainerKey = other }
	otherRuns := func(b *bench) {
		b.ContainerChanged(other, streak.ContainerRun{ID: "o", Running: true, StartedAt: time.Now()})
	}
	cases := map[string]struct {
		play    func(b *bench)
		runs    map[string][]string
		changes []string
	}{
		"from the start": {
			play: func(b *bench) {
				otherRuns(b)
				b.ContainerUnknown(container())
				b.ContainersSynced()
				b.plan(planned("p", restored(v1alpha1.ProbeSucceeded)), planned("q", ofOther))
				pass(15 * time.Second)
				b.plan(planned("p", period(time.Second)), planned("q", ofOther), planned("new"))
				pass(10 * time.Second)
			},
			runs:    map[string][]string{"q": {"0s o", "10s o", "20s o"}},
			changes: []string{"0s q >Succeeded"},
		},
		"later": {
			play: func(b *bench) {
				b.containerRuns("a")
				b.plan(planned("p"))
				pass(15 * time.Second)
				b.ContainerUnknown(container())
				pass(time.Minute)
				b.containerRuns("b")
			},
			runs:    map[string][]string{"p": {"0s a", "10s a", "1m15s b"}},
			changes: []string{"0s p >Succeeded", "1m15s p Succeeded>Unknown", "1m15s p Unknown>Succeeded"},
		},
		"during a run": {
			play: func(b *bench) {
				b.result = slow(3 * time.Second)
				b.containerRuns("a")
				b.plan(planned("p"))
				pass(time.Second)
				b.ContainerUnknown(container())
				pass(time.Minute)
			},
			runs: map[string][]string{"p": {"0s a"}},
		},
		"until it is gone": {
			play: func(b *bench) {
				b.containerRuns("a")
				b.plan(planned("p"))
				pass(time.Second)
				b.ContainerUnknown(container())
				pass(time.Minute)
				b.ContainerGone(container())
				pass(time.Minute)
			},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p >Succeeded", "1m1s p Succeeded>Failed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				tc.play(b)
				b.stop()
				b.check(tc.runs, tc.changes)
			})
		})
	}
}
