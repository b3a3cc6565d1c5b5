// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The reasons of deletions.
const (
	// ReasonPrepared is the reason of the deletion of a pod that its preDelete hook has released. It is
	// deleted without regard to maxUnavailable: it counts as unavailable since it is PreparingDelete.
	ReasonPrepared = "PreparedDelete"
	// ReasonSpecified is the reason of the deletion of a pod that podsToDelete or a label names.
	ReasonSpecified = "SpecifiedDelete"
	// ReasonScaleIn is the reason of the deletion of a pod that exceeds replicas.
	ReasonScaleIn = "ScaleIn"
	// ReasonFinished is the reason of the deletion of a pod that has ended, for example because it was
	// evicted. Its replacement uses its claims.
	ReasonFinished = "Finished"
	// ReasonUpdate is the reason of the deletion of a pod that is replaced by a pod of the update
	// revision.
	ReasonUpdate = "Update"
)

// revert returns pods from PreparingDelete to the state of a new pod if the set needs them again. Pods whose deletion
// is requested by name do not return. Those that are most valuable return first.
func (p *planner) revert() {
	old, updated := p.remaining()
	need := p.replicas - len(old) - len(updated)
	if need <= 0 {
		return
	}
	candidates := p.scaleInOrder(p.filter(func(m *member) bool {
		return m.state == pub.LifecycleStatePreparingDelete && !m.named
	}))
	slices.Reverse(candidates)
	held := func(m *member) bool { return lifecycle.Held(p.Hooks.PreDelete, m.pod) }
	candidates = slices.Concat(slices.DeleteFunc(slices.Clone(candidates), func(m *member) bool { return !held(m) }),
		slices.DeleteFunc(candidates, held))
	for _, m := range candidates[:min(need, len(candidates))] {
		state := lifecycle.Begin(p.Hooks, m.pod)
		if inplace.InProgress(m.pod) {
			state = pub.LifecycleStateUpdating
		}
		p.enter(m, state)
	}
}

// finish deletes the pods in PreparingDelete that the hook does not hold any more.
func (p *planner) finish() {
	for _, m := range p.members {
		if m.state == pub.LifecycleStatePreparingDelete && !lifecycle.Held(p.Hooks.PreDelete, m.pod) {
			p.remove(m, ReasonPrepared, false)
		}
	}
}

// deleteFinished deletes the pods that have ended, when the hook preDelete does not hold them: nothing
// starts them again.
func (p *planner) deleteFinished() {
	for _, pod := range p.Pods {
		switch {
		case !p.finished(pod) || planning.Terminating(pod):
		case !lifecycle.Held(p.Hooks.PreDelete, pod):
			p.out.Deletes = append(p.out.Deletes, planning.PodDelete{Pod: pod, Reason: ReasonFinished})
			p.out.Events = planning.AddEvent(p.out.Events, planning.PodEnded(pod))
		case lifecycle.State(pod) != pub.LifecycleStatePreparingDelete:
			p.out.Patches = append(p.out.Patches,
				*lifecycle.Enter(pod, pub.LifecycleStatePreparingDelete, p.Hooks, p.Now))
		}
	}
}

// leave tells the hook preDelete about the pods that others have deleted.
func (p *planner) leave() {
	for _, pod := range p.Pods {
		if patch := lifecycle.PrepareTerminating(pod, p.Hooks, p.Now); patch != nil && p.belongs(pod) {
			p.out.Patches = append(p.out.Patches, *patch)
		}
	}
}

// finished reports whether the pod is one of the set and has ended.
func (p *planner) finished(pod *corev1.Pod) bool { return planning.Finished(pod) && p.belongs(pod) }

// belongs reports whether the pod is one of the set.
func (p *planner) belongs(pod *corev1.Pod) bool {
	return p.mine(pod) && p.Selector.Matches(labels.Set(pod.Labels))
}

// deleteNamed deletes the pods whose deletion is requested: those that are not ready at once, the
// others as maxUnavailable permits. It returns how many remain.
func (p *planner) deleteNamed() int {
	named := p.filter(func(m *member) bool {
		return m.named && !m.deleted && m.state != pub.LifecycleStatePreparingDelete
	})
	remaining := 0
	for _, m := range p.scaleInOrder(named) {
		if p.blocked(m) {
			remaining++
			continue
		}
		p.remove(m, ReasonSpecified, false)
	}
	return remaining
}

// updateSurge returns how many pods above replicas the update uses: as many as still must be updated,
// at most maxSurge, and none while the set updates no pods.
func (p *planner) updateSurge() int {
	if p.maxSurge == 0 || !p.updates() {
		return 0
	}
	return min(p.maxSurge, min(p.toUpdate(), p.updatable())+p.held)
}

// updatable returns how many pods of old revisions the surge can replace, up to maxSurge: with InPlaceOnly, those that can be
// updated in place, and with InPlaceIfPossible none if all can be, unless maxUnavailable is 0: no pod could be updated. Those that
// guards protect cannot be replaced.
func (p *planner) updatable() int {
	old, _ := p.remaining()
	if len(p.Guards) > 0 {
		old = slices.DeleteFunc(old, func(m *member) bool { return p.GuardOf(m.pod, p.change(m)) != "" })
	}
	switch p.Set.Spec.UpdateStrategy.Type {
	case v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType:
	case v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType:
		replaced := func(m *member) bool { change, _ := p.decide(m); return change == nil }
		if p.maxUnavailable > 0 && !slices.ContainsFunc(old, replaced) {
			return 0
		}
		return min(p.maxSurge, len(old))
	default:
		return min(p.maxSurge, len(old))
	}
	n := 0
	for _, m := range old {
		if change, _ := p.decide(m); change != nil {
			n++
		}
		if n == p.maxSurge {
			break
		}
	}
	return n
}

// toUpdate returns how many pods still must be updated: both the old pods exceed the partition and the
// updated ones are too few.
func (p *planner) toUpdate() int {
	old, updated := p.remaining()
	return max(min(len(old)-p.partition, p.replicas-p.partition-len(updated)), 0)
}

// scaleIn deletes the pods that exceed replicas and the surge of the update: pods of old revisions
// until the partition is met, then those of the update revision.
func (p *planner) scaleIn(surge int) {
	old, updated := p.remaining()
	excess := len(old) + len(updated) - p.replicas - surge
	if excess <= 0 {
		return
	}
	fromOld := min(excess, max(len(old)-p.partition, 0))
	fromOld = max(fromOld, excess-len(updated))
	chosen := p.choose(old, fromOld)
	chosen = append(chosen, p.choose(updated, excess-fromOld)...)
	for _, m := range p.unguarded(chosen) {
		if m.available && p.budget <= 0 || m.ready && p.spare <= 0 {
			continue
		}
		p.remove(m, ReasonScaleIn, false)
	}
}

// unguarded returns the members, with others of any revision in place of those that guards protect, as far as there are any.
func (p *planner) unguarded(chosen []*member) []*member {
	if len(p.Guards) == 0 {
		return chosen
	}
	guarded := func(m *member) bool { return p.Guards.Deletion(m.pod) != "" }
	others := p.scaleInOrder(p.filter(func(m *member) bool { return !m.leaving() && !guarded(m) && !slices.Contains(chosen, m) }))
	for i, m := range chosen {
		if len(others) > 0 && guarded(m) {
			chosen[i], others = others[0], others[1:]
		}
	}
	return chosen
}

// choose returns the n members to delete first. It sorts only if there is a choice.
func (p *planner) choose(members []*member, n int) []*member {
	if n <= 0 {
		return nil
	}
	if n >= len(members) {
		return slices.Clone(members)
	}
	return slices.Clone(p.scaleInOrder(members)[:n])
}
