// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/order"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// findTargets decides which revision missing replicas get, and which pods the strategy permits to
// update, in the order of the update. The targets include pods whose update has started.
func (p *planner) findTargets() {
	p.targets = nil
	p.target = map[types.UID]bool{}
	if !p.strategy.rolling {
		return
	}
	if p.strategy.unordered {
		p.targets = p.unorderedTargets()
	} else {
		for i := range p.replicas {
			p.replicas[i].old = i < p.strategy.partition
		}
		for i := len(p.replicas) - 1; i >= p.strategy.partition; i-- {
			if pod := p.replicas[i].pod; pod != nil {
				p.targets = append(p.targets, pod)
			}
		}
	}
	for _, pod := range p.targets {
		p.target[pod.UID] = true
	}
}

// unorderedTargets returns the targets of an update that is not ordered by ordinals: first the pods
// that are updated or are about to be replaced, then those whose update has started, then the others
// by priority; as many as the partition permits. A started pod stays a target when its labels change.
func (p *planner) unorderedTargets() []*corev1.Pod {
	var done, started, rest []*corev1.Pod
	old := 0
	for i := len(p.replicas) - 1; i >= 0; i-- {
		pod := p.replicas[i].pod
		if pod == nil {
			continue
		}
		if !p.updated(pod) {
			old++
		}
		switch {
		case p.updated(pod), !planning.Active(pod):
			done = append(done, pod)
		case inTransition(pod):
			started = append(started, pod)
		default:
			rest = append(rest, pod)
		}
	}
	count := len(p.replicas) - p.strategy.partition
	for i := range p.replicas {
		if r := &p.replicas[i]; r.pod == nil {
			if r.old = old < p.strategy.partition; r.old {
				old++
			} else {
				count--
			}
		}
	}
	p.waiting = rest
	rest = order.Update(rest, order.UpdateOptions{
		IgnoreProgress: true, Priority: p.strategy.priority,
		Tie: func(a, b *corev1.Pod) int { return p.ordinal(b) - p.ordinal(a) },
	})
	targets := slices.Concat(done, started, p.GuardedLast(rest, p.change))
	return targets[:min(max(count, 0), len(targets))]
}

// findBlocker finds the replica that OrderedReady waits for although its revision is not the one that it
// should have: after a template that does not work, the following replicas would wait for it forever. In
// the order of the update it is repaired at once, otherwise when it is broken. A replica that the
// partition excludes should have the current revision, if that is known.
func (p *planner) findBlocker() {
	if !p.ordered || p.strategy.unordered || !p.strategy.rolling || p.strategy.paused {
		return
	}
	i := slices.IndexFunc(p.replicas, func(r replica) bool { return r.blocked || !p.available(r.pod) })
	if i < 0 {
		return
	}
	pod := p.replicas[i].pod
	if pod == nil || !planning.Active(pod) || planning.Ready(pod) {
		return
	}
	repairs, next := false, slices.IndexFunc(p.targets, func(t *corev1.Pod) bool { return !p.updated(t) })
	if p.target[pod.UID] {
		repairs = !p.updated(pod) && (p.targets[next] == pod || p.broken(pod, true))
	} else {
		repairs = p.History.Current != p.History.Update && !revision.Is(pod, p.History.Current.Name) && p.broken(pod, true)
	}
	if repairs {
		p.blocker = pod
	}
}

// wanted returns the revision that the update of a pod leads to.
func (p *planner) wanted(pod *corev1.Pod) *appsv1.ControllerRevision {
	if p.target[pod.UID] {
		return p.History.Update
	}
	return p.History.Current
}

// inTransition reports whether the deletion or the update of the pod has started.
func inTransition(pod *corev1.Pod) bool {
	switch lifecycle.State(pod) {
	case pub.LifecycleStatePreparingDelete, pub.LifecycleStatePreparingUpdate, pub.LifecycleStateUpdating:
		return true
	default:
		return inProgress(pod)
	}
}

// inProgress reports whether the pod is being updated in place.
func inProgress(pod *corev1.Pod) bool { return !idle(pod) && inplace.InProgress(pod) }

// idle is inplace.Idle, except for updates that change only resources, which may not make the gate False.
func idle(pod *corev1.Pod) bool {
	return inplace.Idle(pod) && !strings.Contains(pod.Annotations[pub.InPlaceUpdateStateKey], `"updateResources":true`)
}

// unavailable reports whether the replica counts against maxUnavailable. A pod that is updated counts until
// the hook inPlaceUpdate is restored: the program of the hook may not have returned it to service. A pod
// counts while its volumes are expanded.
func (p *planner) unavailable(pod *corev1.Pod) bool {
	return pod == nil || p.gone[pod.UID] || inTransition(pod) ||
		lifecycle.State(pod) == pub.LifecycleStateUpdated || !p.available(pod) || p.growth(pod).expanding
}

// permits reports whether the pod may be taken down while so many replicas, with or without the pod, are
// unavailable. A pod that counts as unavailable because of a hook may serve nevertheless.
func (p *planner) permits(pod *corev1.Pod, unavailable int) bool {
	if p.unavailable(pod) {
		unavailable--
	}
	return unavailable < p.strategy.maxUnavailable || !p.available(pod)
}

// starting returns how many replicas of the update revision, or that are replaced by one, are not available yet, and when one of
// them does not count any more, zero if that is not known. Those that cannot be created do not count.
func (p *planner) starting() (n int, wake time.Duration) {
	for i := range p.replicas {
		pod := p.replicas[i].pod
		switch {
		case pod == nil, p.available(pod), !p.target[pod.UID]:
		case p.gone[pod.UID]:
			n++
		case planning.Terminating(pod), inTransition(pod), p.updated(pod) && p.claimsFit(pod):
			if left := planning.Starting(pod, p.Now); left > 0 {
				n++
				wake = earliest.Wait(wake, left)
			}
		}
	}
	return n, wake
}

// update starts to update further pods, and deletes the pods whose deletion is requested by their
// label, as maxUnavailable permits. A pod that is not available is updated even if as many are unavailable. But while all are
// not available, because what they depend on has failed, an update must not restart all of them at once.
func (p *planner) update(proceed bool) {
	unavailable := 0
	for i := range p.replicas {
		if p.unavailable(p.replicas[i].pod) {
			unavailable++
		}
	}
	unavailable += p.deleteSpecified(unavailable)
	if !proceed || p.strategy.paused || len(p.targets) == 0 {
		return
	}
	if wait := order.Wait(p.waiting, order.WaitOptions{
		Strategy: p.strategy.priority, Markers: p.Markers,
		Begun: revision.Begun(p.History.Update), All: p.Pods, Now: p.Now,
	}); wait > 0 {
		p.After(wait)
		return
	}
	blocked := false
	starting, wake := p.starting()
	for _, pod := range p.targets {
		if planning.Terminating(pod) || p.busy(pod) || inTransition(pod) || p.updated(pod) && p.claimsFit(pod) {
			continue
		}
		wasUnavailable := p.unavailable(pod)
		if p.guarded(pod) {
			if !p.strategy.unordered {
				return
			}
			continue
		}
		if !p.permits(pod, unavailable) {
			if !p.strategy.unordered {
				return
			}
			blocked = true
		}
		if blocked && !p.broken(pod, wasUnavailable) {
			continue
		}
		if starting >= p.strategy.maxUnavailable && !p.available(pod) {
			p.After(wake)
			continue
		}
		started := p.startUpdate(pod)
		if !started && p.refusal == claimIncompatible {
			return
		}
		if started {
			starting++
		}
		if (started || p.expanding[pod.UID]) && !wasUnavailable {
			unavailable++
		}
	}
}

// guarded reports whether a guard protects the pod from its update. In the order of the ordinals, the others wait for it.
func (p *planner) guarded(pod *corev1.Pod) bool {
	change := p.change(pod)
	return (change != nil || !p.strategy.inPlaceOnly) && p.Guarded(pod, change)
}

// change returns how the pod is updated in place, nil if it is not.
func (p *planner) change(pod *corev1.Pod) *inplace.Change {
	if len(p.Guards) == 0 || !p.strategy.inPlace {
		return nil
	}
	change, _ := p.Change(pod, p.wanted(pod))
	return change
}

// broken reports whether the pod has not been ready for so long that its update does not wait for the
// pods before it in the order: the update may be what repairs it. A pod that is restarted is not
// broken: it may return with the label that its place in the order depends on.
func (p *planner) broken(pod *corev1.Pod, unavailable bool) bool {
	if !unavailable || planning.Ready(pod) {
		return false
	}
	since := pod.CreationTimestamp.Time
	if ready := planning.Condition(pod, corev1.PodReady); ready != nil {
		since = ready.LastTransitionTime.Time
	}
	left := since.Add(order.WaitBound).Sub(p.Now)
	p.After(left)
	return left <= 0
}

// deleteSpecified deletes replicas whose deletion is requested by their label, the highest ordinal
// first. It returns how many more replicas are unavailable.
func (p *planner) deleteSpecified(unavailable int) int {
	more := 0
	for i := len(p.replicas) - 1; i >= 0; i-- {
		pod := p.replicas[i].pod
		if pod == nil || !specifiedDelete(pod) || !planning.Active(pod) || p.busy(pod) ||
			lifecycle.State(pod) == pub.LifecycleStatePreparingDelete {
			continue
		}
		if p.Guarded(pod, nil) || !p.permits(pod, unavailable+more) {
			continue
		}
		if !p.unavailable(pod) {
			more++
		}
		p.remove(pod, "SpecifiedDelete")
	}
	return more
}

// startUpdate updates the pod in place if the strategy and the change permit it, and otherwise deletes
// it. It reports false if neither is possible, or not yet because claims are expanded first.
func (p *planner) startUpdate(pod *corev1.Pod) bool {
	if !p.expandClaims(pod) {
		return false
	}
	reason := "Update"
	if !p.target[pod.UID] {
		reason = "Revert"
	}
	if !p.strategy.inPlace {
		p.remove(pod, reason)
		return true
	}
	switch change, why := p.Change(pod, p.wanted(pod)); {
	case change != nil:
		p.updateInPlace(pod, change)
	case p.strategy.inPlaceOnly:
		p.refuse(impossible, cannotUpdate(pod, why))
		return false
	default:
		p.remove(pod, reason)
	}
	return true
}

// cannotUpdate returns the message about a pod that cannot be updated in place although the strategy
// permits nothing else.
func cannotUpdate(pod *corev1.Pod, why string) string {
	return fmt.Sprintf("Pod %s cannot be updated in place: %s.", pod.Name, why)
}

// refuse records the first reason why a pod cannot be updated as the strategy permits.
func (p *planner) refuse(reason, message string) {
	if p.refused == "" {
		p.refusal, p.refused = reason, message
	}
}

// updateInPlace starts the update, or lets the hook prepare the pod first.
func (p *planner) updateInPlace(pod *corev1.Pod, change *inplace.Change) {
	if p.Guarded(pod, change) {
		return
	}
	if lifecycle.Held(p.Hooks.InPlaceUpdate, pod) {
		p.addPatch(lifecycle.Enter(pod, pub.LifecycleStatePreparingUpdate, p.Hooks, p.Now))
		return
	}
	name := p.wanted(pod).Name
	p.addPatch(p.StartInPlace(pod, change, inplace.Target{
		Revision: name, Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: name}, Grace: p.strategy.grace,
	}))
}
