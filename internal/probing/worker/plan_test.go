// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

func ofPlan(plan string) func(*worker.Task) { return func(p *worker.Task) { p.Plan = plan } }

func inContainer(name string) func(*worker.Task) {
	return func(p *worker.Task) { p.Key.Name = name }
}

// TestIdentityOfProbes checks which probes of a later plan continue probes of an earlier one.
func TestIdentityOfProbes(t *testing.T) {
	cases := map[string]struct {
		first, second []func(*worker.Task)
		want          []string
	}{
		"same marker":   {[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("1")}, nil},
		"older manager": {[]func(*worker.Task){ofPlan("1")}, nil, nil},
		"newer manager": {nil, []func(*worker.Task){ofPlan("1")}, nil},
		"recreated marker": {
			[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("2")},
			[]string{"1s p gone", "1s p >Failed"},
		},
		"moved to a container with another result": {
			nil, []func(*worker.Task){inContainer("other"), command("q")},
			[]string{"1s p gone", "1s p Succeeded>Failed"},
		},
		"moved to a container with the same result": {
			nil, []func(*worker.Task){inContainer("other")}, []string{"1s p gone"},
		},
		"moved to a container that has not run": {
			nil, []func(*worker.Task){inContainer("none")}, []string{"1s p gone"},
		},
		"moved to a container that has ended": {
			nil, []func(*worker.Task){inContainer("ended")}, []string{"1s p gone", "1s p Succeeded>Failed"},
		},
		"moved by a recreated marker": {
			[]func(*worker.Task){ofPlan("1")}, []func(*worker.Task){ofPlan("2"), inContainer("other")},
			[]string{"1s p gone", "1s p >Succeeded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				success := true
				b.result = func(target probe.Target, _ int) (time.Duration, probe.Outcome, error) {
					return 0, probe.Outcome{Success: success && target.Exec.Command[0] == "p"}, nil
				}
				other := func(name string) probeid.ContainerKey { return probeid.ContainerKey{PodUID: "uid", Name: name} }
				b.ContainerChanged(other("other"), streak.ContainerRun{ID: "b", Running: true, StartedAt: time.Now()})
				b.ContainerChanged(other("ended"), streak.ContainerRun{ID: "c", Reason: "exited"})
				b.containerRuns("a")
				b.plan(planned("p", tc.first...))
				pass(time.Second)
				success = name != "recreated marker"
				b.plan(planned("p", tc.second...))
				pass(time.Second)
				if diff := cmp.Diff(append([]string{"0s p >" + string(v1alpha1.ProbeSucceeded)}, tc.want...), b.changes); diff != "" {
					t.Errorf("changes (-want +got):\n%s", diff)
				}
				b.stop()
			})
		})
	}
}
