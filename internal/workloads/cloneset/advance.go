// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// advance continues what has started in each pod: updates in place, the states after them, and the
// conditions of readiness gates. It does not start anything, so a paused set continues it too.
func (p *planner) advance() {
	for _, m := range p.members {
		if m.state != pub.LifecycleStatePreparingDelete && !m.interrupted && unsettled(m.pod) {
			step := inplace.Next(m.pod, p.Now)
			p.after(step.After)
			m.patch = step.Patch
			if step.Refused != "" && p.refused(m, step.Refused) {
				continue
			}
		}
		if state := p.next(m); state != m.state {
			m.patch = m.patch.Merge(lifecycle.Enter(m.pod, state, p.Set.Spec.Lifecycle, p.Now))
			m.state = state
		} else {
			m.patch = m.patch.Merge(lifecycle.Refresh(m.pod, p.Set.Spec.Lifecycle, p.Now))
		}
		if stops(m.patch) {
			p.withdraw(m, true)
		}
	}
}

// unsettled reports whether the pod may need a write of an update in place. For most pods this is
// decided without decoding the annotations of the last update.
func unsettled(pod *corev1.Pod) bool {
	if lifecycle.State(pod) != pub.LifecycleStateNormal {
		return true
	}
	if _, grace := pod.Annotations[pub.InPlaceUpdateGraceKey]; grace {
		return true
	}
	if !workload.HasGate(pod, pub.InPlaceUpdateReady) {
		return false
	}
	c := workload.Condition(pod, pub.InPlaceUpdateReady)
	return c == nil || c.Status != corev1.ConditionTrue
}

// next returns the state that follows from what has happened in the pod.
func (p *planner) next(m *member) pub.LifecycleStateType {
	switch m.state {
	case pub.LifecycleStateNormal, pub.LifecycleStatePreparingDelete:
		return m.state
	case pub.LifecycleStatePreparingNormal:
		return lifecycle.Begin(p.Set.Spec.Lifecycle, m.pod)
	case pub.LifecycleStatePreparingUpdate:
		if m.updated { // The template was rolled back before the hook released the pod.
			return lifecycle.AfterUpdate(p.Set.Spec.Lifecycle, m.pod)
		}
		return m.state
	case pub.LifecycleStateUpdating:
		if !inplace.Done(m.pod) {
			return m.state
		}
		return lifecycle.AfterUpdate(p.Set.Spec.Lifecycle, m.pod)
	case pub.LifecycleStateUpdated:
		return lifecycle.AfterUpdate(p.Set.Spec.Lifecycle, m.pod)
	default: // A state of another version of OpenKruise.
		return pub.LifecycleStateNormal
	}
}

// refused recreates a pod whose update cannot be finished in place, and reports whether it did. With
// InPlaceOnly and OnDelete, the pod stays as it is.
func (p *planner) refused(m *member, why string) bool {
	switch p.Set.Spec.UpdateStrategy.Type {
	case v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType:
		p.cannot(m, why)
		return false
	case v1alpha1.OnDeleteCloneSetUpdateStrategyType:
		return false
	}
	if p.blocked(m) {
		return false
	}
	p.remove(m, ReasonUpdate, true)
	return true
}
