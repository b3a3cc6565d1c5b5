// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstatus computes a pod's status from its state machine, as the kubelet does:
// the phase, the conditions and the containers' statuses. It is pure.
package podstatus

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// idPrefix is the prefix of container IDs. In a cluster it is the name of the runtime.
const idPrefix = "local://"

// The reasons of waiting containers.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
)

// Of returns the status of the pod at now. It keeps the addresses and the start time of the
// current status, and conditions that are not the kubelet's.
func Of(now time.Time, pod *corev1.Pod, machine *lifecycle.PodMachine) corev1.PodStatus {
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
func container(pod *corev1.Pod, machine *lifecycle.PodMachine, c *lifecycle.ContainerMachine) corev1.ContainerStatus {
	running := c.Up()
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
	last := c.LastExit
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

func terminated(exit *lifecycle.ContainerExit) *corev1.ContainerStateTerminated {
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
func phase(machine *lifecycle.PodMachine) corev1.PodPhase {
	running, failed, stopped, waiting := 0, 0, 0, 0
	for _, c := range machine.Containers() {
		switch {
		case c.Init && !c.Sidecar && c.Phase == lifecycle.Exited && c.Exit.Code != 0 && machine.Ended():
			return corev1.PodFailed
		case c.Init && (!c.Sidecar || !c.Up()):
		case c.Up():
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
