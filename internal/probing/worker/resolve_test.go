// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// TestMovedProbeReportsItsContainer checks that the sink knows the new container of a moved
// probe when the plan is in force. Otherwise, an agent restart could discard the state.
func TestMovedProbeReportsItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.ContainerChanged(probeid.ContainerKey{PodUID: "uid", Name: "other"}, streak.ContainerRun{ID: "b", Running: true, StartedAt: time.Now()})
		b.containerRuns("a")
		b.plan(planned("p"))
		pass(time.Second)
		b.result = slow(time.Minute)
		b.plan(planned("p", inContainer("other")))
		if b.state.State != v1alpha1.ProbeSucceeded || b.state.ContainerID != "b" {
			t.Errorf("state %q of container %q, want Succeeded of b", b.state.State, b.state.ContainerID)
		}
		b.stop()
	})
}

// TestEndOfContainerWithFailedProbe checks that the end of a container replaces the message and
// clears the problem of a probe that has failed before.
func TestEndOfContainerWithFailedProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.result = func(_ probe.Target, n int) (time.Duration, probe.Outcome, error) {
			if n > 1 {
				return 0, probe.Outcome{}, errors.New("no such file")
			}
			return 0, probe.Outcome{Message: "no"}, nil
		}
		b.containerRuns("a")
		b.plan(planned("p"))
		pass(15 * time.Second)
		if b.troubled["p"] != v1alpha1.ProbeCannotRun {
			t.Fatalf("problem %q, want CannotRun", b.troubled["p"])
		}
		b.ContainerChanged(container(), streak.ContainerRun{ID: "a", Reason: "exited with code 1"})
		pass(time.Second)
		if want := "the container is not running: exited with code 1"; b.state.Message != want || b.troubled["p"] != "" {
			t.Errorf("message %q and problem %q, want %q and none", b.state.Message, b.troubled["p"], want)
		}
		b.stop()
	})
}
