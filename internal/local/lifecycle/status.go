// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// idPrefix is the prefix of container IDs. In a cluster it is the name of the runtime.
const idPrefix = "local://"

// The reasons of waiting containers.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
)

// Status returns the status of the pod at now, as the kubelet computes it. It keeps the addresses
// and the start time of the current status, and conditions that are not the kubelet's.
func (p *PodMachine) Status(now time.Time) corev1.PodStatus {
	status := *p.pod.Status.DeepCopy()
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range p.containers {
		cs := p.containerStatus(c)
		if c.Init {
			status.InitContainerStatuses = append(status.InitContainerStatuses, cs)
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, cs)
		}
	}
	status.Phase = p.phase()
	status.Conditions = p.conditions(now, status.Phase)
	return status
}

func (p *PodMachine) containerStatus(c *ContainerMachine) corev1.ContainerStatus {
	running := c.up()
	started := running && c.Startup
	status := corev1.ContainerStatus{
		Name:         c.Spec.Name,
		Image:        c.Spec.Image,
		RestartCount: int32(max(c.Starts-1, 0)),
		Ready:        running && c.Ready && (!c.Init || c.Sidecar),
		Started:      &started,
	}
	if c.ID != "" {
		status.ContainerID = idPrefix + c.ID
	}
	last := c.LastExit
	switch {
	case running:
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt)}
	case c.Phase == Exited && c.Delay > 0:
		status.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: reasonCrashLoop,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				c.Delay, c.Spec.Name, p.pod.Name, p.pod.Namespace, p.pod.UID),
		}
		last = c.Exit
	case c.Phase == Exited:
		status.State.Terminated = terminated(c.Exit)
		status.Ready = c.Init && !c.Sidecar && c.Exit.Code == 0
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonCreating}
		if !p.initialized() && c.Phase == Waiting {
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

func terminated(exit *ContainerExit) *corev1.ContainerStateTerminated {
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

func (p *PodMachine) phase() corev1.PodPhase {
	running, failed, stopped, waiting := 0, 0, 0, 0
	for _, c := range p.containers {
		switch {
		case c.Init && !c.Sidecar && c.Phase == Exited && c.Exit.Code != 0 && p.ended:
			return corev1.PodFailed
		case c.Init && (!c.Sidecar || !c.up()):
		case c.up():
			running++
		case c.Exit != nil:
			stopped++
			if c.Exit.Code != 0 {
				failed++
			}
		case c.LastExit != nil:
			// It is restarting. A pod that has run never returns to Pending.
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case !p.initialized() || waiting > 0:
		return corev1.PodPending
	case running > 0 || !p.Done():
		return corev1.PodRunning
	case failed > 0:
		return corev1.PodFailed
	case stopped > 0:
		return corev1.PodSucceeded
	default:
		return corev1.PodPending
	}
}
