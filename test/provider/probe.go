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
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
)

// targetOf resolves the defaults and named ports of a probe, which Seamark leaves to the
// provider.
func targetOf(pod *corev1.Pod, planned *v1alpha1.PodContainerProbe) (probe.Target, error) {
	resolved, problem := plan.Resolve(pod, planned.ContainerName, &planned.Probe.Probe, plan.KubernetesDefaults())
	if problem.Reason != "" {
		return probe.Target{}, fmt.Errorf("resolve probe %s: %s", planned.Name, problem.Reason)
	}
	target, err := probe.Parse(&resolved, address)
	if err != nil {
		return probe.Target{}, fmt.Errorf("parse probe %s: %w", planned.Name, err)
	}
	return target, nil
}

// execProber runs exec probes as processes on this machine.
type execProber struct{}

// Probe runs the command once. A program that cannot be started is also a failure.
func (execProber) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
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
