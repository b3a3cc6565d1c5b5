// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// RunOf returns the run of the container that the pod reports. It returns false if the container has
// never run.
func RunOf(pod *corev1.Pod, container string) (streak.ContainerRun, bool) {
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if status.Name != container {
			continue
		}
		switch state := status.State; {
		case state.Running != nil:
			return streak.ContainerRun{ID: status.ContainerID, Running: true, StartedAt: state.Running.StartedAt.Time}, true
		case state.Terminated != nil:
			return ended(status.ContainerID, state.Terminated), true
		case status.LastTerminationState.Terminated != nil:
			return ended(status.ContainerID, status.LastTerminationState.Terminated), true
		}
	}
	return streak.ContainerRun{}, false
}

func ended(id string, state *corev1.ContainerStateTerminated) streak.ContainerRun {
	run := streak.ContainerRun{ID: id, StartedAt: state.StartedAt.Time, Reason: fmt.Sprintf("exited with code %d", state.ExitCode)}
	if state.Reason != "" && state.Reason != "Completed" && state.Reason != "Error" {
		run.Reason += " (" + state.Reason + ")"
	}
	return run
}

// Ended returns the state of a probe whose container has ended.
func Ended(now time.Time, run streak.ContainerRun) streak.State {
	evaluator := streak.New(atOnce(), streak.Phase{})
	evaluator.ContainerChanged(now, run)
	return evaluator.State()
}

// Once returns the state of a probe whose outcome takes effect at once, whatever its thresholds
// are.
func Once(now time.Time, run streak.ContainerRun, outcome probe.Outcome) streak.State {
	evaluator := streak.New(atOnce(), streak.Phase{})
	evaluator.ContainerChanged(now, run)
	evaluator.Outcome(now, outcome)
	return evaluator.State()
}

func atOnce() streak.Policy {
	return streak.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1}
}
