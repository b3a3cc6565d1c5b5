// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstatus says what a pod's status is, as the kubelet writes it: phase,
// conditions, and the containers' states, from what the pod's containers have gone
// through. It is pure.
package podstatus

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// idPrefix stands before container IDs, where the name of the runtime stands in a cluster.
const idPrefix = "local://"

// Reasons of waiting containers.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
)

// Of returns the status of the pod at now. What the pod's status says of its addresses and
// start stays, and so do conditions that are not the kubelet's.
func Of(now time.Time, pod *corev1.Pod, machine *lifecycle.Pod) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range machine.Containers() {
		cs := container(pod, machine, c)
		if c.Init {
			status.InitContainerStatuses = append(status.InitContainerStatuses, cs)
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, cs)
		}
	}
	status.Phase = phase(machine)
	status.Conditions = conditions(now, pod, machine, status)
	return status
}

// container returns the status of one container.
func container(pod *corev1.Pod, machine *lifecycle.Pod, c *lifecycle.Container) corev1.ContainerStatus {
	running := c.Phase == lifecycle.Running || c.Phase == lifecycle.Stopping
	started := running && c.Startup
	status := corev1.ContainerStatus{
		Name:         c.Spec.Name,
		Image:        c.Spec.Image,
		RestartCount: c.Restarts(),
		Ready:        running && c.Ready && (!c.Init || c.Sidecar),
		Started:      &started,
	}
	if c.ID != "" {
		status.ContainerID = idPrefix + c.ID
	}
	last := c.Last
	switch {
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}
	case c.Phase == lifecycle.Exited && c.Delay > 0:
		status.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: reasonCrashLoop,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				c.Delay, c.Spec.Name, pod.Name, pod.Namespace, pod.UID),
		}
		last = c.Exit
	case c.Phase == lifecycle.Exited:
		status.State.Terminated = terminated(c.Exit)
		status.Ready = c.Init && !c.Sidecar && c.Exit.Code == 0
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonCreating}
		if !machine.Initialized() && c.Phase == lifecycle.Waiting {
			status.State.Waiting.Reason = reasonInitializing
		}
		if c.Exit != nil {
			last = c.Exit
		}
	}
	if last != nil {
		status.LastTerminationState.Terminated = terminated(last)
	}
	return status
}

func terminated(exit *lifecycle.Exit) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{
		ExitCode:    exit.Code,
		Signal:      exit.Signal,
		Reason:      exit.Reason,
		Message:     exit.Message,
		StartedAt:   metav1.NewTime(exit.StartedAt),
		FinishedAt:  metav1.NewTime(exit.FinishedAt),
		ContainerID: idPrefix + exit.ID,
	}
}

// phase returns the pod's phase.
func phase(machine *lifecycle.Pod) corev1.PodPhase {
	running, failed, stopped, waiting := 0, 0, 0, 0
	for _, c := range machine.Containers() {
		up := c.Phase == lifecycle.Running || c.Phase == lifecycle.Stopping
		switch {
		case c.Init && !c.Sidecar && c.Phase == lifecycle.Exited && c.Exit.Code != 0 && machine.Ended():
			return corev1.PodFailed
		case c.Init && (!c.Sidecar || !up):
		case up:
			running++
		case c.Exit != nil:
			stopped++
			if c.Exit.Code != 0 {
				failed++
			}
		case c.Last != nil:
			// It starts again: a pod that has run never goes back to Pending.
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case !machine.Initialized() || waiting > 0:
		return corev1.PodPending
	case running > 0 || !machine.Done():
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	case stopped > 0:
		return corev1.PodSucceeded
	default:
		return corev1.PodPending
	}
}
