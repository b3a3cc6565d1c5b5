// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
// maxUnavailable permits. Pods that are not ready are updated even if maxUnavailable is reached.
func (p *planner) update() error {
	n := p.toUpdate()
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
			p.after(wait)
			return nil
		case m.patch != nil || blocked && m.ready && !m.started():
			n--
			continue
		}
		possible, err := p.updatePod(m, &blocked)
		if err != nil {
			return err
		}
		if possible {
			n--
		} else {
			p.cancel(m)
		}
	}
	return nil
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
		m.patch = inplace.Next(m.pod, p.Now).Patch
	}
	if m.state == pub.LifecycleStatePreparingUpdate && m.patch == nil {
		p.enter(m, lifecycle.AfterUpdate(p.Set.Spec.Lifecycle, m.pod))
	}
}

// updateOrder returns the pods that do not have the update revision and remain in the set.
func (p *planner) updateOrder() []*member {
	byPod := make(map[*corev1.Pod]*member)
	var pods, all []*corev1.Pod
	for _, m := range p.members {
		if !m.leaving() && !m.updated {
			byPod[m.pod] = m
			pods = append(pods, m.pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	strategy := &p.Set.Spec.UpdateStrategy
	if len(strategy.ScatterStrategy) > 0 {
		for _, m := range p.members {
			all = append(all, m.pod)
		}
	}
	sorted := make([]*member, len(pods))
	for i, pod := range order.Update(pods, order.UpdateOptions{
		Pinned:   func(pod *corev1.Pod) bool { return byPod[pod].started() },
		Priority: strategy.PriorityStrategy, Scatter: strategy.ScatterStrategy, All: all,
	}) {
		sorted[i] = byPod[pod]
	}
	return sorted
}

// wait returns for how long no further update may start, because a marker is about to write the label
// that a pod's priority depends on.
func (p *planner) wait(candidates []*member) time.Duration {
	var pods []*corev1.Pod
	for _, m := range candidates {
		if !m.started() {
			pods = append(pods, m.pod)
		}
	}
	return order.Wait(pods, order.WaitOptions{
		Strategy: p.Set.Spec.UpdateStrategy.PriorityStrategy, Markers: p.Markers,
		Begun: revision.Begun(p.revisions.Update), All: p.Pods, Now: p.Now,
	})
}

// updatePod takes the next step of the pod's update, unless maxUnavailable does not permit it, which
// it records in blocked. It returns false if the pod cannot be updated at all.
func (p *planner) updatePod(m *member, blocked *bool) (bool, error) {
	kind := p.Set.Spec.UpdateStrategy.Type
	only := kind == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	if p.blocked(m) && !only {
		*blocked = *blocked || !m.started()
		return true, nil
	}
	var change *inplace.Change
	if only || kind == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType {
		var why string
		var err error
		if change, why, err = p.decide(m); err != nil {
			return false, err
		}
		if change == nil && only {
			p.cannot(m, why)
			return false, nil
		}
	}
	switch {
	case p.blocked(m):
		*blocked = *blocked || !m.started()
	case change == nil:
		p.remove(m, ReasonUpdate, true)
	case lifecycle.Held(p.inPlaceUpdate(), m.pod) && m.state != pub.LifecycleStateUpdating:
		if m.state != pub.LifecycleStatePreparingUpdate {
			p.enter(m, pub.LifecycleStatePreparingUpdate)
		}
	default:
		p.startInPlace(m, change)
	}
	return true, nil
}

// startInPlace starts the update of the pod in place.
func (p *planner) startInPlace(m *member, change *inplace.Change) {
	target := inplace.Target{
		Revision: p.revisions.Update.Name, Labels: revisionLabels(p.revisions.Update.Name), Grace: p.grace(),
	}
	start := inplace.Start(m.pod, change, target, p.Now)
	p.enter(m, pub.LifecycleStateUpdating)
	m.patch = m.patch.Merge(start)
	p.withdraw(m, true)
	p.after(target.Grace)
}

// decide returns how the pod is updated in place, or why it cannot be.
func (p *planner) decide(m *member) (*inplace.Change, string, error) {
	old := revision.Of(m.pod, p.revisions.All)
	if old == nil {
		return nil, fmt.Sprintf("revision %q of the pod does not exist",
			m.pod.Labels[appsv1.ControllerRevisionHashLabelKey]), nil
	}
	if only := p.Set.Spec.UpdateStrategy.Type == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType; p.RecreateForClaims && !only && p.newClaims(old) {
		return nil, "volumeClaimTemplates have changed", nil
	}
	difference := p.differences[old.Name]
	if difference == nil {
		from, err := p.template(old)
		if err != nil {
			return nil, "", err
		}
		difference = inplace.Between(from, &p.Set.Spec.Template)
		p.differences[old.Name] = difference
	}
	change, why := difference.Decide(m.pod)
	return change, why, nil
}

// template returns the template of the revision, decoded once per step.
func (p *planner) template(rev *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	if p.templates == nil {
		p.templates = make(map[string]*corev1.PodTemplateSpec)
	}
	if template := p.templates[rev.Name]; template != nil {
		return template, nil
	}
	template, err := revision.Template(rev)
	if err == nil {
		p.templates[rev.Name] = template
	}
	return template, err
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

// readRevisions decides what becomes of the revisions.
func (p *planner) readRevisions() error {
	inUse := make(map[string]bool)
	for _, pod := range p.Pods {
		if hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; hash != "" {
			inUse[hash] = true
		}
	}
	limit := 10
	if p.Set.Spec.RevisionHistoryLimit != nil {
		limit = int(*p.Set.Spec.RevisionHistoryLimit)
	}
	owner := revision.Owner{
		Object: p.Set, Kind: Kind(), Template: &p.Set.Spec.Template, Encoder: p.Encoder,
		CurrentRevision: p.Set.Status.CurrentRevision, Now: p.Now,
	}
	if p.Set.Status.CollisionCount != nil {
		owner.CollisionCount = *p.Set.Status.CollisionCount
	}
	var err error
	if p.revisions, err = revision.Plan(owner, p.Revisions, limit, inUse); err != nil {
		return err
	}
	return p.recordClaims()
}

// writeRevisions adds the changes of revisions to the step.
func (p *planner) writeRevisions() {
	p.out.CreateRevision = p.revisions.Create
	p.out.UpdateRevisions = p.revisions.UpdateRevisions
	p.out.DeleteRevisions = p.revisions.Delete
}

// collect adds the changes of pods to the step.
func (p *planner) collect() {
	for _, m := range p.members {
		switch {
		case m.deleted:
			p.out.Deletes = append(p.out.Deletes, workload.PodDelete{Pod: m.pod, Reason: m.reason})
		case m.patch != nil:
			p.out.Patches = append(p.out.Patches, *m.patch)
		}
	}
	p.events()
}
