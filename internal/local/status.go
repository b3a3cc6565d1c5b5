// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seamark-dev/seamark/internal/local/podstatus"
)

// refreshStatuses works out the statuses of the pods that something has happened to.
func (l *loop) refreshStatuses(now time.Time) {
	for _, p := range l.pods {
		if p.dirty {
			l.refreshStatus(now, p)
		}
	}
}

func (l *loop) refreshStatus(now time.Time, p *pod) {
	p.dirty = false
	before := p.object.Status
	p.object.Status = podstatus.Of(now, p.object, p.machine)
	after := &p.object.Status
	l.tellContainers(now, p, before.InitContainerStatuses, after.InitContainerStatuses)
	l.tellContainers(now, p, before.ContainerStatuses, after.ContainerStatuses)
	l.tellConditions(now, p, before.Conditions)
	if before.Phase != after.Phase {
		l.tell(p.phaseChange(now))
	}
	if before.Phase != after.Phase || !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		sooner(&l.replanAt, now)
	}
}

// phaseChange makes the change that a phase is.
func (p *pod) phaseChange(now time.Time) Change {
	change := p.change(now, KindPod, "")
	change.Phase = p.object.Status.Phase
	return change
}

// tellContainers tells of the containers whose status has changed.
func (l *loop) tellContainers(now time.Time, p *pod, before, after []corev1.ContainerStatus) {
	for i := range after {
		if i < len(before) && equality.Semantic.DeepEqual(before[i], after[i]) {
			continue
		}
		change := p.change(now, KindContainer, after[i].Name)
		change.Status = after[i].DeepCopy()
		l.tell(change)
	}
}

// tellConditions tells of the conditions that are not what they were before.
func (l *loop) tellConditions(now time.Time, p *pod, before []corev1.PodCondition) {
	after := p.object.Status.Conditions
	for _, c := range before {
		if podstatus.Condition(after, c.Type) == nil {
			l.tellCondition(now, p, c, true)
		}
	}
	for _, c := range after {
		was := podstatus.Condition(before, c.Type)
		if was == nil || was.Status != c.Status || was.Reason != c.Reason || was.Message != c.Message {
			l.tellCondition(now, p, c, false)
		}
	}
}

func (l *loop) tellCondition(now time.Time, p *pod, c corev1.PodCondition, removed bool) {
	change := p.change(now, KindCondition, "")
	change.Condition, change.Removed = &c, removed
	l.tell(change)
}

// tellKeys tells of labels or annotations that are not what they were before.
func (l *loop) tellKeys(now time.Time, p *pod, kind Kind, before, after map[string]string) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		if had == has && was == is {
			continue
		}
		change := p.change(now, kind, "")
		change.Key, change.Value, change.Removed = key, is, !has
		if !has {
			change.Value = was
		}
		l.tell(change)
	}
}
