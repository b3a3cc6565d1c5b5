// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of the kubelet's conditions.
const (
	reasonCompleted      = "PodCompleted"
	reasonFailed         = "PodFailed"
	reasonNotReady       = "ContainersNotReady"
	reasonNotInitialized = "ContainersNotInitialized"
	reasonGatesNotReady  = "ReadinessGatesNotReady"
)

// conditions returns the kubelet's conditions, then the pod's other conditions. A condition
// keeps its last transition time if its status does not change.
func (p *PodMachine) conditions(now time.Time, phase corev1.PodPhase) []corev1.PodCondition {
	containersReady := p.containersReady(phase)
	ours := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue},
		p.podInitialized(phase),
		p.ready(containersReady),
		containersReady,
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	for i := range ours {
		ours[i].LastTransitionTime = metav1.NewTime(now)
		if before := Condition(p.pod.Status.Conditions, ours[i].Type); before != nil && before.Status == ours[i].Status {
			ours[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	for _, c := range p.pod.Status.Conditions {
		if Condition(ours, c.Type) == nil {
			ours = append(ours, c)
		}
	}
	return ours
}

// Condition returns the condition of a type, or nil.
func Condition(all []corev1.PodCondition, conditionType corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(all, func(c corev1.PodCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// condition returns a condition that is False if it has a reason, and True otherwise.
func condition(conditionType corev1.PodConditionType, reason, message string) corev1.PodCondition {
	status := corev1.ConditionTrue
	if reason != "" {
		status = corev1.ConditionFalse
	}
	return corev1.PodCondition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

func (p *PodMachine) podInitialized(phase corev1.PodPhase) corev1.PodCondition {
	if phase == corev1.PodSucceeded {
		return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: reasonCompleted}
	}
	var incomplete []string
	if !p.initialized() {
		for _, c := range p.containers {
			if c.Init && !c.initialized() {
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

func (p *PodMachine) containersReady(phase corev1.PodPhase) corev1.PodCondition {
	switch phase {
	case corev1.PodSucceeded:
		return condition(corev1.ContainersReady, reasonCompleted, "")
	case corev1.PodFailed:
		return condition(corev1.ContainersReady, reasonFailed, "")
	}
	var unready []string
	for _, c := range p.containers {
		if (!c.Init || c.Sidecar) && (!c.up() || !c.Ready) {
			unready = append(unready, c.Spec.Name)
		}
	}
	if len(unready) > 0 {
		return condition(corev1.ContainersReady, reasonNotReady, fmt.Sprintf("containers with unready status: %s", unready))
	}
	return condition(corev1.ContainersReady, "", "")
}

// ready returns the condition Ready: all containers are ready, and the condition of every
// readiness gate is True.
func (p *PodMachine) ready(containersReady corev1.PodCondition) corev1.PodCondition {
	if containersReady.Status != corev1.ConditionTrue {
		return condition(corev1.PodReady, containersReady.Reason, containersReady.Message)
	}
	var missing []string
	for _, gate := range p.pod.Spec.ReadinessGates {
		switch c := Condition(p.pod.Status.Conditions, gate.ConditionType); {
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
