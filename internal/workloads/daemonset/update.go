// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

// update starts to update pods of old revisions: first those that are not ready, then the others as maxUnavailable or
// maxSurge permits, by descending name of the node, and in all as many as partition permits.
func (p *planner) update() {
	p.resume()
	if p.paused() {
		return
	}
	for s := range p.acted {
		p.replaced(s)
	}
	p.forEach(replaces, func(s *slot) bool {
		if !p.updateSlot(s) {
			return false
		}
		p.replaced(s) // Also a guarded one, which is not replaced: its node has no available pod.
		return true
	})
	p.recreate() // After the pods that are not ready, which count from their update on.
	p.forEach(begins, p.updateServing)
	p.forEach(updates, p.updateServing)
}

// updateServing starts to update an old pod that serves, as maxSurge or maxUnavailable permits. It returns false if no further
// pod of its class may be updated.
func (p *planner) updateServing(s *slot) bool {
	if p.guarded(s) {
		return true
	}
	if !p.state.config.surge {
		return p.takeDown(s, p.maxUnavailable) && p.updateSlot(s)
	}
	if p.surging >= p.maxSurge {
		return false
	}
	p.surging++
	return p.updateSlot(s)
}

// takeDown reports whether the pod of a slot may become unavailable now, and counts it. One that counts already does not count
// twice. If it counts only because of an update in place that is not done, it may be taken down if fewer nodes than
// maxUnavailable do not serve: otherwise several of them would wait for each other.
func (p *planner) takeDown(s *slot, maxUnavailable int) bool {
	if s.view.serving {
		if p.unavailable-p.serving >= maxUnavailable {
			return false
		}
		p.serving--
		return true
	}
	unavailable := p.unavailable
	if s.view.unavailable {
		unavailable--
	}
	if unavailable >= maxUnavailable {
		return false
	}
	p.unavailable = unavailable + 1
	return true
}

// resume continues the updates in place that were interrupted, or makes the pods ready again that are not to be updated
// any more.
func (p *planner) resume() {
	p.forEach(resumes, func(s *slot) bool {
		old := p.state.config.pair(s).old
		var change *inplace.Change
		if inPlace(p.set) {
			change, _ = p.Change(old, p.History.Update)
		}
		switch {
		case p.paused() || p.state.config.surge || p.permitted < 0:
			p.permitted++
			p.revert(s, old)
		case p.deletes <= 0:
			return false
		case p.Guarded(old, change):
			p.revert(s, old)
		case change == nil:
			p.leave(s, old, updateReason)
		default:
			p.updateInPlace(s, old, change)
		}
		return true
	})
}

// revert makes a pod whose update was interrupted ready again.
func (p *planner) revert(s *slot, pod *corev1.Pod) {
	progress, _ := p.Next(pod)
	p.patch(s, progress.Patch)
}

// recreate deletes the pods whose update in place is refused. They count as unavailable since it began, but may serve. With a
// surge, whose maxUnavailable is 0, one of them is deleted at a time: a node has one pod of a revision.
func (p *planner) recreate() {
	p.forEach(refused, func(s *slot) bool {
		pod := p.state.config.pair(s).current
		if p.deletes > 0 && p.recreates(s) && !p.Guarded(pod, nil) && (!ready(pod) || p.takeDown(s, max(p.maxUnavailable, 1))) {
			p.leave(s, pod, updateReason)
		}
		return p.deletes > 0
	})
}

// recreates reports whether a pod of the update revision may be recreated because its update in place is refused: the
// update is not stopped, and neither are more nodes updated than partition permits.
func (p *planner) recreates(s *slot) bool {
	return p.state.config.rolling && s.facts.reached && !p.paused() && p.permitted >= 0
}

// replaced counts the slot if its old pod is not ready: it has no available pod until the new one is. The built-in
// controller counts it from the next step on, and makes more pods unavailable in this one.
func (p *planner) replaced(s *slot) {
	if c := p.state.config; s.view.class == replaces && !s.view.unavailable && !c.surge && !c.ignores(s.facts) {
		p.unavailable++
	}
}

// updateSlot starts to update the old pod of the slot. It returns false if no further pod may be updated by this step.
func (p *planner) updateSlot(s *slot) bool {
	if p.guarded(s) {
		return true
	}
	surge := p.state.config.surge
	if p.permitted <= 0 || surge && p.creates <= 0 || !surge && p.deletes <= 0 {
		return false
	}
	p.permitted--
	if surge {
		p.newPod(s)
		return true
	}
	old := p.state.config.pair(s).old
	if inPlace(p.set) {
		if change, _ := p.Change(old, p.History.Update); change != nil {
			p.updateInPlace(s, old, change)
			return true
		}
	}
	p.leave(s, old, updateReason)
	return true
}

// guarded reports whether a guard protects the old pod of the slot from its update. Other nodes do not wait for it.
func (p *planner) guarded(s *slot) bool {
	if len(p.Guards) == 0 {
		return false
	}
	old := p.state.config.pair(s).old
	var change *inplace.Change
	if inPlace(p.set) && !p.state.config.surge {
		change, _ = p.Change(old, p.History.Update)
	}
	return p.Guarded(old, change)
}

// updateInPlace starts the update of a pod in place.
func (p *planner) updateInPlace(s *slot, pod *corev1.Pod, change *inplace.Change) {
	p.deletes-- // A step updates as many pods as it deletes.
	p.patch(s, p.StartInPlace(pod, change, inplace.Target{Revision: p.History.Update.Name, Labels: p.revisionLabels()}))
}

const (
	// firstRetry and longestRetry are the times between two deletions of failed pods of a node.
	firstRetry   = time.Second
	longestRetry = 15 * time.Minute
	// doublings is after how many failures the longest time is reached.
	doublings = 10
)

// fail notes that a failed pod of the slot is deleted. The next one is deleted later.
func (s *slot) fail(now time.Time) {
	if now.Sub(s.retry) > 2*longestRetry {
		s.failures = 0
	}
	s.retry = now.Add(min(firstRetry<<min(s.failures, doublings), longestRetry))
	s.failures++
}
