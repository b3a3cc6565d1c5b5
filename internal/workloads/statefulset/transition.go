// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// advance continues what has been started in pods: deletions that a hook delays, and updates in place.
// What is no longer wanted is reverted, for example while the update is paused. It does not depend on
// the order in which pods are scaled and updated, because a pod that is not ready while it is prepared
// would block it.
func (p *planner) advance() {
	for i := range p.replicas {
		pod := p.replicas[i].pod
		if pod == nil || !planning.Active(pod) || p.busy(pod) {
			continue
		}
		old := pod == p.blocker || p.target[pod.UID] && !p.updated(pod) && !p.strategy.paused
		p.advancePod(pod, specifiedDelete(pod), old)
	}
	for _, pod := range p.excess {
		if planning.Active(pod) && !p.busy(pod) {
			p.advancePod(pod, true, false)
		}
	}
}

// advancePod continues what has been started in the pod, if its deletion or its update is still
// wanted.
func (p *planner) advancePod(pod *corev1.Pod, deletion, update bool) {
	hooks := p.Hooks
	var progress inplace.Progress
	if !idle(pod) {
		progress, _ = p.Next(pod)
		p.After(progress.After)
		p.Stuck(pod.Name, progress.Stuck)
	}
	switch lifecycle.State(pod) {
	case pub.LifecycleStatePreparingDelete:
		switch {
		case !deletion && !p.recreates(pod, update, progress):
			p.addPatch(lifecycle.Enter(pod, lifecycle.Begin(hooks, pod), hooks, p.Now).Merge(progress.Patch))
		case lifecycle.Held(hooks.PreDelete, pod), p.Guarded(pod, nil), !p.takeDown(pod):
			p.addPatch(lifecycle.Refresh(pod, hooks, p.Now).Merge(progress.Patch))
		default:
			p.remove(pod, "PreparedDelete")
		}
	case pub.LifecycleStatePreparingUpdate:
		// The program of the hook may have removed handlers: it restores them in the state Updated.
		back := lifecycle.AfterUpdate(hooks, pod)
		switch {
		case !update:
			p.addPatch(lifecycle.Enter(pod, back, hooks, p.Now).Merge(progress.Patch))
		case lifecycle.Held(hooks.InPlaceUpdate, pod), p.guarded(pod), !p.takeDown(pod):
			p.addPatch(lifecycle.Refresh(pod, hooks, p.Now).Merge(progress.Patch))
		default:
			if !p.startUpdate(pod) {
				p.addPatch(lifecycle.Enter(pod, back, hooks, p.Now).Merge(progress.Patch))
			}
		}
	default:
		p.advanceUpdate(pod, update, progress)
	}
}

// recreates reports whether the update of a pod whose deletion has started requires the deletion. A pod
// whose update in place is refused has the update revision already.
func (p *planner) recreates(pod *corev1.Pod, update bool, progress inplace.Progress) bool {
	switch {
	case p.strategy.inPlaceOnly:
		return false
	case !update:
		return progress.Refused != "" && p.replaces(pod)
	case !p.strategy.inPlace:
		return true
	}
	change, _ := p.Change(pod, p.wanted(pod))
	return change == nil
}

// replaces reports whether the strategy permits to recreate a pod whose update in place is refused.
func (p *planner) replaces(pod *corev1.Pod) bool {
	return p.target[pod.UID] && !p.strategy.paused
}

// takeDown reports whether a pod whose update or deletion has started may become unavailable now. Since
// it started, other replicas may have become unavailable, or maxUnavailable may have been lowered. A replica
// that is being updated in place counts as unavailable. If it still serves, it may be taken down if fewer replicas than
// maxUnavailable do not serve: otherwise several of them would wait for each other.
func (p *planner) takeDown(pod *corev1.Pod) bool {
	if p.down < 0 {
		p.down = 0
		for i := range p.replicas {
			switch pod := p.replicas[i].pod; {
			case !p.available(pod):
				p.down++
			case inProgress(pod):
				p.down++
				p.serving++
			}
		}
	}
	if !p.replica(pod) || !p.available(pod) {
		return true
	}
	if inProgress(pod) {
		if p.down-p.serving >= p.strategy.maxUnavailable {
			return false
		}
		p.serving--
		return true
	}
	if p.down >= p.strategy.maxUnavailable {
		return false
	}
	p.down++
	return true
}

// advanceUpdate continues an update in place that has started. A further revision does not wait for
// an update that is not done: its image may be what is wrong.
func (p *planner) advanceUpdate(pod *corev1.Pod, update bool, progress inplace.Progress) {
	hooks, state := p.Hooks, lifecycle.State(pod)
	started := state == pub.LifecycleStateUpdating || inProgress(pod)
	if started && update && !p.guarded(pod) && p.takeDown(pod) && p.startUpdate(pod) {
		return
	}
	switch {
	case started && progress.Refused != "" && p.strategy.inPlaceOnly:
		if progress.Stuck == "" {
			p.refuse(impossible, cannotUpdate(pod, progress.Refused))
		}
	case started && progress.Refused != "":
		if p.replaces(pod) && !p.Guarded(pod, nil) && p.takeDown(pod) {
			p.remove(pod, "Update")
		}
	case state == pub.LifecycleStateUpdating && (!inProgress(pod) || finishes(progress.Patch)):
		p.addPatch(lifecycle.Enter(pod, lifecycle.AfterUpdate(hooks, pod), hooks, p.Now).Merge(progress.Patch))
	case state == pub.LifecycleStateUpdated && lifecycle.AfterUpdate(hooks, pod) == pub.LifecycleStateNormal,
		state == pub.LifecycleStatePreparingNormal && lifecycle.Begin(hooks, pod) == pub.LifecycleStateNormal:
		p.addPatch(lifecycle.Enter(pod, pub.LifecycleStateNormal, hooks, p.Now).Merge(progress.Patch))
	default:
		p.addPatch(lifecycle.Refresh(pod, hooks, p.Now).Merge(progress.Patch))
	}
}

// finishes reports whether the patch makes a pod ready after its update.
func finishes(patch *planning.PodPatch) bool {
	return patch != nil && slices.ContainsFunc(patch.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == pub.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
	})
}

// remove deletes the pod, or lets the hook prepare its deletion.
func (p *planner) remove(pod *corev1.Pod, reason string) {
	if planning.Terminating(pod) || p.busy(pod) || p.Guarded(pod, nil) {
		return
	}
	if hooks := p.Hooks; lifecycle.Held(hooks.PreDelete, pod) {
		p.addPatch(lifecycle.Enter(pod, pub.LifecycleStatePreparingDelete, hooks, p.Now))
		return
	}
	p.gone[pod.UID] = true
	p.out.Deletes = append(p.out.Deletes, planning.PodDelete{Pod: pod, Reason: reason})
	if planning.Finished(pod) {
		p.out.Events = planning.AddEvent(p.out.Events, planning.PodEnded(pod))
	}
	p.Event("SuccessfulDelete", pod.Name, "Deleted pod %s: "+reason+".", "Deleted %d pods, "+reason+": %s.")
}
