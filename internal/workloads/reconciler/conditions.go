// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
)

// show sets the conditions that clients read by the conventions of kstatus. They follow from the specification, from the rest of the
// status and from which pods are updated, so that they differ only if the status is written anyway. Reconciling and Stalled are absent if they are not True.
func (r *Reconciler[S, T]) show(status *T, state rollout.State, now time.Time) {
	conditions := r.descriptor.Conditions(status)
	put := func(kind string, is corev1.ConditionStatus) {
		conditions.Put(planning.SetCondition{Type: kind, Status: is, Reason: string(state.Reason), Message: text.Message(state.Message)}, now)
	}
	ready, also := corev1.ConditionFalse, v1alpha1.ConditionReconciling
	switch state.Phase {
	case rollout.Complete:
		ready, also = corev1.ConditionTrue, ""
	case rollout.Stalled:
		also = v1alpha1.ConditionStalled
	case rollout.NotObserved, rollout.Progressing, rollout.Paused:
	}
	put(v1alpha1.ConditionReady, ready)
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if kind == also {
			put(kind, corev1.ConditionTrue)
		} else {
			conditions.Remove(kind)
		}
	}
	r.descriptor.SetConditions(status, conditions)
}
