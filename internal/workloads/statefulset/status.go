// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"iter"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

const (
	// impossible is the reason of FailedUpdatePod when the strategy permits only updates in place and the
	// change does not.
	impossible = "InPlaceUpdateImpossible"
	// claimIncompatible is the reason of FailedUpdatePod when a claim cannot follow its template.
	claimIncompatible = "ClaimIncompatible"
	// noOrdinals is the reason of FailedCreatePod when there are fewer ordinals than replicas.
	noOrdinals = "NoFreeOrdinals"
)

// status returns the status after the step. Pods that the step deletes count as terminating.
func (p *planner) status() appsv1beta1.StatefulSetStatus {
	status := *p.set.Status.DeepCopy()
	status.ObservedGeneration = p.set.Generation
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	status.CurrentReplicas, status.UpdatedReplicas = 0, 0
	status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = 0, 0
	status.CurrentRevision = p.History.Current.Name
	status.UpdateRevision = p.History.Update.Name
	collisions := p.History.CollisionCount
	status.CollisionCount = &collisions
	status.LabelSelector = p.Selector.String()
	for pod := range p.members() {
		p.count(&status, pod)
	}
	status.VolumeClaims = p.claimStatus()
	p.complete(&status)
	conditions := conditionsOf(&status)
	p.conditions(&conditions)
	p.preDownload(&status, &conditions)
	p.progress(&status, &conditions)
	setConditions(&status, conditions)
	return status
}

// preDownload pulls images before an update in place.
func (p *planner) preDownload(status *appsv1beta1.StatefulSetStatus, conditions *planning.Conditions) {
	rollout := step.Rollout{UpdatedReady: int(status.UpdatedReadyReplicas), Total: len(p.replicas), AtOnce: p.strategy.maxUnavailable}
	if p.Input.PreDownload && p.strategy.inPlace {
		if pods := slices.DeleteFunc(slices.Clone(p.targets), p.updated); len(pods) > 0 {
			rollout.Pods, rollout.Sample = len(pods), pods[0]
			rollout.Nodes = func() []string { return step.NodesOf(pods) }
		}
	}
	p.PreDownload(rollout, conditions)
}

func (p *planner) members() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for i := range p.replicas {
			if pod := p.replicas[i].pod; pod != nil && !yield(pod) {
				return
			}
		}
		for _, pod := range p.excess {
			if !yield(pod) {
				return
			}
		}
	}
}

func (p *planner) count(status *appsv1beta1.StatefulSetStatus, pod *corev1.Pod) {
	status.Replicas++
	updated := p.updated(pod)
	if pod.Status.Phase == corev1.PodRunning && planning.Ready(pod) {
		status.ReadyReplicas++
		available, left := planning.Available(pod, p.minReady, p.Now)
		p.After(left)
		available = available && lifecycle.State(pod) == pub.LifecycleStateNormal
		if available {
			status.AvailableReplicas++
		}
		if updated {
			status.UpdatedReadyReplicas++
			if available {
				status.UpdatedAvailableReplicas++
			}
		}
	}
	if planning.Terminating(pod) || p.gone[pod.UID] {
		return
	}
	if revision.Is(pod, p.History.Current.Name) {
		status.CurrentReplicas++
	}
	if updated {
		status.UpdatedReplicas++
	}
}

// complete makes the update revision the current one when all replicas have it and are available. A set that is scaled to zero
// keeps both revisions while a partition divides them.
func (p *planner) complete(status *appsv1beta1.StatefulSetStatus) {
	replicas := planning.Number(len(p.replicas))
	divided := replicas == 0 && p.strategy.rolling && p.strategy.partition > 0
	if !divided && status.Replicas == replicas && status.UpdatedReplicas == replicas && status.UpdatedAvailableReplicas == replicas {
		status.CurrentRevision = status.UpdateRevision
		status.CurrentReplicas = status.UpdatedReplicas
	}
}

// conditions sets the conditions that do not depend on failed writes.
func (p *planner) conditions(c *planning.Conditions) {
	if p.refused != "" {
		c.Set(string(appsv1beta1.FailedUpdatePod), p.refusal, p.refused, p.Now)
	} else {
		c.Set(string(appsv1beta1.FailedUpdatePod), impossible, "", p.Now)
		c.Set(string(appsv1beta1.FailedUpdatePod), claimIncompatible, "", p.Now)
	}
	message := ""
	if wanted := replicasOf(p.set); len(p.replicas) < wanted {
		message = fmt.Sprintf("spec.reserveOrdinals leaves %d of %d replicas an ordinal between spec.ordinals.start and %d.",
			len(p.replicas), wanted, math.MaxInt32)
	}
	c.Set(string(appsv1beta1.FailedCreatePod), noOrdinals, message, p.Now)
	p.SetConditions(c, conditionsOf(&p.set.Status), slices.Collect(p.members()))
}

// conditionsOf and setConditions convert the conditions of a status.
func conditionsOf(status *appsv1beta1.StatefulSetStatus) planning.Conditions {
	return planning.ConvertConditions(status.Conditions, func(c appsv1.StatefulSetCondition) planning.SetCondition {
		return planning.SetCondition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, Transitioned: c.LastTransitionTime,
		}
	})
}

func setConditions(status *appsv1beta1.StatefulSetStatus, conditions planning.Conditions) {
	status.Conditions = planning.ConvertConditions(conditions, func(c planning.SetCondition) appsv1.StatefulSetCondition {
		return appsv1.StatefulSetCondition{
			Type: appsv1.StatefulSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.Transitioned,
		}
	})
}
