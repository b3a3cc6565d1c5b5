// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probe/exec"
	"github.com/seamark-dev/seamark/internal/probe/probers"
)

// newProbers returns the probers of a run. Commands run in the containers of execs.
func newProbers(execs *execs, concurrency int, version string) probe.Set {
	set := probers.New(exec.New(execs, concurrency, nil), version)
	for handler, prober := range set {
		if handler != probe.HandlerExec {
			set[handler] = networkProber{prober, execs.runs}
		}
	}
	return set
}

// networkProber runs a network probe of a container. In a cluster, only the container can
// answer on its address. Here, any process of the machine can.
type networkProber struct {
	probe.Prober
	// runs reports whether a container runs.
	runs func(containerID string) bool
}

// Probe runs the probe. It returns an error if the container has ended meanwhile: then
// another process may have answered.
func (p networkProber) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	outcome, err := p.Prober.Probe(ctx, target)
	if err == nil && !p.runs(target.ContainerID) {
		return probe.Outcome{}, fmt.Errorf("container %s ended", target.ContainerID)
	}
	return outcome, err
}
