// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probe"
)

// targetOf fills in what the marker leaves to the provider: defaults, and named ports.
func targetOf(found *corev1.Pod, asked *v1alpha1.PodContainerProbe) (probe.Target, error) {
	resolved, problem := plan.Resolve(found, asked.ContainerName, &asked.Probe.Probe, plan.KubernetesDefaults())
	if problem.Reason != "" {
		return probe.Target{}, fmt.Errorf("probe %s can't be run: %s", asked.Name, problem.Reason)
	}
	target, err := probe.Parse(&resolved, address)
	if err != nil {
		return probe.Target{}, fmt.Errorf("probe %s can't be run: %w", asked.Name, err)
	}
	return target, nil
}

// command runs exec probes as processes of this machine.
type command struct{}

// Probe runs the command once. A program that can't be started is a failure too.
func (command) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	out, err := exec.CommandContext(limited, target.Exec.Command[0], target.Exec.Command[1:]...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return probe.Outcome{}, ctx.Err()
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return probe.Outcome{TimedOut: true, Message: "timed out"}, nil
	case err != nil && len(out) == 0:
		out = []byte(err.Error())
	}
	return probe.Outcome{Success: err == nil, Message: probe.Message(out)}, nil
}
