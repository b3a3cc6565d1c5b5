// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/order"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// started reports whether an update of the pod has begun: it comes before all others.
func (m *member) started() bool {
	return m.interrupted || m.state != pub.LifecycleStateNormal && m.state != pub.LifecycleStatePreparingNormal
}

// update starts and continues the update of old pods, in order: as many as the partition requires and
// maxUnavailable permits. Pods that are not ready are updated even if maxUnavailable is reached, see mayRestart.
func (p *planner) update() {
	n := p.toUpdate()
	p.restarts, p.restartsWake = p.mayRestart()
	if !p.updates() {
		n = 0
	}
	candidates := p.updateOrder()
	wait := p.wait(candidates)
	blocked := false
	for _, m := range candidates {
		switch {
		case n <= 0:
			p.cancel(m)
			continue
		case wait > 0 && !m.started():
			p.After(wait)
			return
		case m.patch != nil || blocked && m.ready && !m.started():
			n--
			continue
		}
		if p.updatePod(m, &blocked) {
			n--
		} else {
			p.cancel(m)
		}
	}
}

// mayRestart returns how many old pods that are not ready the step may restart. They take no pod out of service, but while all
// pods are not ready, because what they depend on has failed, an update must not restart all of them at once: at most as many pods
// of the update revision as maxUnavailable, and at least one, are starting.
func (p *planner) mayRestart() (left int, wake time.Duration) {
	left = max(p.maxUnavailable, 1)
	_, updated := p.remaining()
	for _, m := range updated {
		if wait := planning.Starting(m.pod, p.Now); !m.available && wait > 0 {
			left--
			wake = earliest.Wait(wake, wait)
		}
	}
	return left, wake
}

// restart counts a pod that is to be restarted. It returns false if it is not ready and has to wait.
func (p *planner) restart(m *member) bool {
	if !m.ready && !m.interrupted && p.restarts <= 0 {
		p.After(p.restartsWake)
		return false
	}
	p.restarts--
	return true
}

// updates reports whether the set itself starts to update pods now.
func (p *planner) updates() bool {
	strategy := &p.Set.Spec.UpdateStrategy
	return !strategy.Paused && strategy.Type != v1alpha1.OnDeleteCloneSetUpdateStrategyType
}

// cancel returns a pod that waits for the hook inPlaceUpdate, or whose update was interrupted, if it is
// not to be updated any more, because the update is paused, the partition has been raised, or the
// template permits no update.
func (p *planner) cancel(m *member) {
	if m.interrupted && m.patch == nil {
		progress, _ := p.Next(m.pod)
		m.patch = progress.Patch
	}
	if m.state == pub.LifecycleStatePreparingUpdate && m.patch == nil {
		p.enter(m, lifecycle.AfterUpdate(p.Hooks, m.pod))
	}
}

// updateOrder returns the pods that do not have the update revision and remain in the set.
func (p *planner) updateOrder() []*member {
	strategy := &p.Set.Spec.UpdateStrategy
	old, _ := p.remaining()
	pods := order.Update(podsOf(old), order.UpdateOptions{
		Pinned:        func(pod *corev1.Pod) bool { return p.byPod[pod].started() },
		PriorityFirst: p.partition > 0,
		Priority:      strategy.PriorityStrategy, Scatter: strategy.ScatterStrategy, All: podsOf(p.members),
	})
	return p.membersOf(p.GuardedLast(pods, func(pod *corev1.Pod) *inplace.Change { return p.change(p.byPod[pod]) }))
}

// wait returns for how long no further update may start, because a marker is about to write the label
// that a pod's priority depends on.
func (p *planner) wait(candidates []*member) time.Duration {
	candidates = slices.DeleteFunc(slices.Clone(candidates), (*member).started)
	return order.Wait(podsOf(candidates), order.WaitOptions{
		Strategy: p.Set.Spec.UpdateStrategy.PriorityStrategy, Markers: p.Markers,
		Begun: revision.Begun(p.History.Update), All: p.Pods, Now: p.Now,
	})
}

// updatePod takes the next step of the pod's update, unless maxUnavailable does not permit it, which
// it records in blocked. It returns false if the pod cannot be updated at all.
func (p *planner) updatePod(m *member, blocked *bool) bool {
	kind := p.Set.Spec.UpdateStrategy.Type
	only := kind == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	if p.blocked(m) && !only {
		*blocked = *blocked || !m.started()
		return true
	}
	var change *inplace.Change
	if only || kind == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType {
		var why string
		if change, why = p.decide(m); change == nil && only {
			p.cannot(m, why)
			return false
		}
	}
	switch {
	case p.blocked(m):
		*blocked = *blocked || !m.started()
	case p.Guarded(m.pod, change):
		return false
	case change != nil && lifecycle.Held(p.Hooks.InPlaceUpdate, m.pod) && m.state != pub.LifecycleStateUpdating:
		if m.state != pub.LifecycleStatePreparingUpdate {
			p.enter(m, pub.LifecycleStatePreparingUpdate)
		}
	case !p.restart(m): // It waits for others.
	case change == nil:
		p.remove(m, ReasonUpdate, true)
	default:
		p.startInPlace(m, change)
	}
	return true
}

// startInPlace starts the update of the pod in place.
func (p *planner) startInPlace(m *member, change *inplace.Change) {
	target := inplace.Target{
		Revision: p.History.Update.Name, Labels: revisionLabels(p.History.Update.Name), Grace: p.grace(),
	}
	m.patch, m.state = p.StartInPlace(m.pod, change, target), pub.LifecycleStateUpdating
	p.withdraw(m, true)
	p.After(target.Grace)
}

// change returns how the member is updated in place, nil if it is recreated.
func (p *planner) change(m *member) *inplace.Change {
	switch p.Set.Spec.UpdateStrategy.Type {
	case v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType:
		change, _ := p.decide(m)
		return change
	default:
		return nil
	}
}

// decide returns how the pod is updated in place, or why it cannot be.
func (p *planner) decide(m *member) (*inplace.Change, string) {
	inPlaceOnly := p.Set.Spec.UpdateStrategy.Type == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	if old := revision.Of(m.pod, p.History.All); old != nil && p.recreateForClaims && !inPlaceOnly && p.newClaims(old) {
		return nil, "volumeClaimTemplates have changed"
	}
	return p.Change(m.pod, p.History.Update)
}

func (p *planner) grace() time.Duration {
	if strategy := p.Set.Spec.UpdateStrategy.InPlaceUpdateStrategy; strategy != nil {
		return time.Duration(strategy.GracePeriodSeconds) * time.Second
	}
	return 0
}

// cannot records that InPlaceOnly prevents the update of the pod. The message is about the pod with
// the first name, so that it does not change while nothing does.
func (p *planner) cannot(m *member, why string) {
	message := fmt.Sprintf("Pod %s cannot be updated in place, and the update strategy is InPlaceOnly: %s.",
		m.pod.Name, why)
	if p.stuck == "" || message < p.stuck {
		p.stuck = message
	}
}

// collect adds the changes of pods to the step.
func (p *planner) collect() {
	for _, m := range p.members {
		switch {
		case m.deleted:
			p.out.Deletes = append(p.out.Deletes, planning.PodDelete{Pod: m.pod, Reason: m.reason})
		case m.patch != nil:
			p.out.Patches = append(p.out.Patches, *m.patch)
		}
	}
	p.events()
}

// advance continues what has started in each pod: updates in place, the states after them, and the
// conditions of readiness gates. It does not start anything, so a paused set continues it too.
func (p *planner) advance() {
	_, updated := p.remaining()
	recreates := p.updates() && len(updated) <= p.replicas-p.partition
	for _, m := range p.members {
		if m.isNew() {
			continue
		}
		if m.state != pub.LifecycleStatePreparingDelete && !m.interrupted && !inplace.Idle(m.pod) {
			progress, _ := p.Next(m.pod)
			p.After(progress.After)
			m.patch = progress.Patch
			p.Stuck(m.pod.Name, progress.Stuck)
			if progress.Refused != "" && p.refused(m, &progress, recreates) {
				continue
			}
		}
		if state := p.next(m); state != m.state {
			m.patch = m.patch.Merge(lifecycle.Enter(m.pod, state, p.Hooks, p.Now))
			m.state = state
		} else {
			m.patch = m.patch.Merge(lifecycle.Refresh(m.pod, p.Hooks, p.Now))
		}
		if stops(m.patch) {
			p.withdraw(m, true)
		}
	}
}

// isNew reports whether the pod has been created and not yet been scheduled. Its first write, which gives it the conditions of its
// readiness gates, also changes its state.
func (m *member) isNew() bool {
	return m.state == pub.LifecycleStatePreparingNormal && m.pod.Spec.NodeName == ""
}

// next returns the state that follows from what has happened in the pod.
func (p *planner) next(m *member) pub.LifecycleStateType {
	switch m.state {
	case pub.LifecycleStateNormal, pub.LifecycleStatePreparingDelete:
		return m.state
	case pub.LifecycleStatePreparingNormal:
		return lifecycle.Begin(p.Hooks, m.pod)
	case pub.LifecycleStatePreparingUpdate:
		if m.updated { // The template was rolled back before the hook released the pod.
			return lifecycle.AfterUpdate(p.Hooks, m.pod)
		}
		return m.state
	case pub.LifecycleStateUpdating:
		if !inplace.Done(m.pod) {
			return m.state
		}
		return lifecycle.AfterUpdate(p.Hooks, m.pod)
	case pub.LifecycleStateUpdated:
		return lifecycle.AfterUpdate(p.Hooks, m.pod)
	default: // A state of another version of OpenKruise.
		return pub.LifecycleStateNormal
	}
}

// refused recreates a pod whose update cannot be finished in place, and reports whether it did. With InPlaceOnly and if
// recreates is false, because of OnDelete, while the update is paused, or because the partition permits fewer updated pods than
// there are, the pod stays as it is. A pod of an old revision is a candidate of the update.
func (p *planner) refused(m *member, progress *inplace.Progress, recreates bool) bool {
	if p.Set.Spec.UpdateStrategy.Type == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType {
		if progress.Stuck == "" {
			p.cannot(m, progress.Refused)
		}
		return false
	}
	switch {
	case !recreates || !m.updated:
		return false
	case p.blocked(m):
		p.held++
		return false
	}
	p.remove(m, ReasonUpdate, true)
	return true
}
