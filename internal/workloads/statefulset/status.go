// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
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
	status.CurrentRevision = p.revisions.Current.Name
	status.UpdateRevision = p.revisions.Update.Name
	collisions := p.revisions.CollisionCount
	status.CollisionCount = &collisions
	status.LabelSelector = p.selector.String()
	for pod := range p.members() {
		p.count(&status, pod)
	}
	status.VolumeClaims = p.claimStatus()
	p.complete(&status)
	p.conditions(&status)
	return status
}

// members returns the pods of the set.
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

// count adds the pod to the status.
func (p *planner) count(status *appsv1beta1.StatefulSetStatus, pod *corev1.Pod) {
	status.Replicas++
	updated := p.updated(pod)
	if pod.Status.Phase == corev1.PodRunning && workload.Ready(pod) {
		status.ReadyReplicas++
		available, _ := workload.Available(pod, p.minReady, p.in.Now)
		available = available && lifecycle.State(pod) != pub.LifecycleStatePreparingNormal
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
	if workload.Terminating(pod) || p.gone[pod.UID] {
		return
	}
	if revision.Is(pod, p.revisions.Current.Name) {
		status.CurrentReplicas++
	}
	if updated {
		status.UpdatedReplicas++
	}
}

// complete makes the update revision the current one when all replicas have it and are ready.
func (p *planner) complete(status *appsv1beta1.StatefulSetStatus) {
	all := int32(len(p.replicas)) //nolint:gosec // bounded by replicas, an int32
	if p.strategy.rolling && status.Replicas == all && status.ReadyReplicas == all && status.UpdatedReplicas == all {
		status.CurrentRevision = status.UpdateRevision
		status.CurrentReplicas = status.UpdatedReplicas
	}
}

// conditions sets the conditions that do not depend on failed writes.
func (p *planner) conditions(status *appsv1beta1.StatefulSetStatus) {
	if p.refused != "" {
		setCondition(status, appsv1.StatefulSetCondition{
			Type: appsv1beta1.FailedUpdatePod, Status: corev1.ConditionTrue, Reason: p.refusal, Message: p.refused,
		}, p.in.Now)
	} else {
		clearCondition(status, appsv1beta1.FailedUpdatePod, impossible, p.in.Now)
		clearCondition(status, appsv1beta1.FailedUpdatePod, claimIncompatible, p.in.Now)
	}
	clearCondition(status, appsv1beta1.FailedCreatePod, planFailed, p.in.Now)
	if wanted := replicasOf(p.set); len(p.replicas) < wanted {
		setCondition(status, appsv1.StatefulSetCondition{
			Type: appsv1beta1.FailedCreatePod, Status: corev1.ConditionTrue, Reason: noOrdinals,
			Message: fmt.Sprintf("spec.reserveOrdinals leaves %d of %d replicas an ordinal between spec.ordinals.start and %d.",
				len(p.replicas), wanted, math.MaxInt32),
		}, p.in.Now)
	} else {
		clearCondition(status, appsv1beta1.FailedCreatePod, noOrdinals, p.in.Now)
	}
	p.overdue(status)
	keys := workload.MarkedKeys(p.set.Spec.Selector, p.in.Markers)
	if len(keys) == 0 {
		clearCondition(status, workload.SelectorMarked, "MarkerWritesSelectorKey", p.in.Now)
		return
	}
	setCondition(status, appsv1.StatefulSetCondition{
		Type: workload.SelectorMarked, Status: corev1.ConditionTrue, Reason: "MarkerWritesSelectorKey",
		Message: fmt.Sprintf("PodProbeMarkers write labels of the selector: %s. "+
			"The set releases and replaces a pod when such a label changes.", strings.Join(keys, ", ")),
	}, p.in.Now)
}

// overdue sets the condition about pods that are terminating for too long: no other pod gets their names.
func (p *planner) overdue(status *appsv1beta1.StatefulSetStatus) {
	message, next := workload.Overdue(slices.Collect(p.members()), p.in.Now)
	p.requeue(next)
	if message == "" {
		clearCondition(status, workload.DeletionOverdue, workload.StillTerminating, p.in.Now)
		return
	}
	if i := conditionIndex(status, workload.DeletionOverdue); i < 0 || status.Conditions[i].Status != corev1.ConditionTrue {
		p.out.StatusEvents = append(p.out.StatusEvents, workload.Event{
			Type: corev1.EventTypeWarning, Reason: workload.DeletionOverdue, Sentence: message,
		})
	}
	setCondition(status, appsv1.StatefulSetCondition{
		Type: workload.DeletionOverdue, Status: corev1.ConditionTrue, Reason: workload.StillTerminating, Message: message,
	}, p.in.Now)
}
