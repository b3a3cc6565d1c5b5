// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// Reasons of the kubelet's conditions.
const (
	reasonCompleted      = "PodCompleted"
	reasonFailed         = "PodFailed"
	reasonNotReady       = "ContainersNotReady"
	reasonNotInitialized = "ContainersNotInitialized"
	reasonGatesNotReady  = "ReadinessGatesNotReady"
)

// conditions returns the kubelet's conditions, then the others that the pod has. A
// condition whose status stays keeps the time of its transition.
func conditions(now time.Time, pod *corev1.Pod, machine *lifecycle.Pod, status corev1.PodStatus) []corev1.PodCondition {
	containersReady := containersReady(machine, status)
	ours := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue},
		initialized(machine, status.Phase),
		ready(pod, containersReady),
		containersReady,
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	for i := range ours {
		ours[i].LastTransitionTime = metav1.NewTime(now)
		if before := find(pod.Status.Conditions, ours[i].Type); before != nil && before.Status == ours[i].Status {
			ours[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	for _, c := range pod.Status.Conditions {
		if find(ours, c.Type) == nil {
			ours = append(ours, c)
		}
	}
	return ours
}

func find(all []corev1.PodCondition, conditionType corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(all, func(c corev1.PodCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// condition is True, or False where there is a reason against it.
func condition(conditionType corev1.PodConditionType, reason, message string) corev1.PodCondition {
	status := corev1.ConditionTrue
	if reason != "" {
		status = corev1.ConditionFalse
	}
	return corev1.PodCondition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

func initialized(machine *lifecycle.Pod, phase corev1.PodPhase) corev1.PodCondition {
	if phase == corev1.PodSucceeded {
		return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: reasonCompleted}
	}
	var incomplete []string
	if !machine.Initialized() {
		for _, c := range machine.Containers() {
			if c.Init && !complete(c) {
				incomplete = append(incomplete, c.Spec.Name)
			}
		}
	}
	if len(incomplete) > 0 {
		return condition(corev1.PodInitialized, reasonNotInitialized,
			fmt.Sprintf("containers with incomplete status: %s", incomplete))
	}
	return condition(corev1.PodInitialized, "", "")
}

// complete is whether an init container has done its part.
func complete(c *lifecycle.Container) bool {
	if c.Sidecar {
		return c.Phase == lifecycle.Running && c.Startup
	}
	return c.Phase == lifecycle.Exited && c.Exit.Code == 0
}

func containersReady(machine *lifecycle.Pod, status corev1.PodStatus) corev1.PodCondition {
	switch status.Phase {
	case corev1.PodSucceeded:
		return condition(corev1.ContainersReady, reasonCompleted, "")
	case corev1.PodFailed:
		return condition(corev1.ContainersReady, reasonFailed, "")
	}
	var unready []string
	for _, c := range machine.Containers() {
		up := c.Phase == lifecycle.Running || c.Phase == lifecycle.Stopping
		if (!c.Init || c.Sidecar) && (!up || !c.Ready) {
			unready = append(unready, c.Spec.Name)
		}
	}
	if len(unready) > 0 {
		return condition(corev1.ContainersReady, reasonNotReady, fmt.Sprintf("containers with unready status: %s", unready))
	}
	return condition(corev1.ContainersReady, "", "")
}

// ready is whether all containers are, and every readiness gate has its condition True.
func ready(pod *corev1.Pod, containersReady corev1.PodCondition) corev1.PodCondition {
	if containersReady.Status != corev1.ConditionTrue {
		return condition(corev1.PodReady, containersReady.Reason, containersReady.Message)
	}
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := find(pod.Status.Conditions, gate.ConditionType); {
		case c == nil:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %s", gate.ConditionType, c.Status))
		}
	}
	if len(missing) > 0 {
		return condition(corev1.PodReady, reasonGatesNotReady, strings.Join(missing, ", "))
	}
	return condition(corev1.PodReady, "", "")
}
