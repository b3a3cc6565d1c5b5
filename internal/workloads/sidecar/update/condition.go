// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// setUpgradable sets the condition SidecarSetUpgradable of pods that cannot be updated in place to the latest revision, and of
// those that have been updated in place, as OpenKruise does. If this step patches a pod already, a later one sets the condition.
func (p *planner) setUpgradable() {
	if p.Held || p.Set.Spec.UpdateStrategy.Type == v1alpha1.NotUpdateSidecarSetStrategyType {
		return
	}
	for _, m := range p.members {
		can := m.why == ""
		if m.patched || p.Skipped[m.pod.UID] || !m.updated && (can || !m.selected) {
			continue
		}
		old := planning.Condition(m.pod, v1alpha1.PodSidecarSetUpgradable)
		if can && (old == nil && m.pod.Annotations[v1alpha1.SidecarSetInPlaceStateKey] == "" || old != nil && old.Status == corev1.ConditionTrue) {
			continue
		}
		upgradable := map[string]bool{}
		if old != nil && (json.Unmarshal([]byte(old.Message), &upgradable) != nil || upgradable == nil) {
			upgradable = map[string]bool{} // Others can write the condition, too.
		}
		if said, found := upgradable[p.Set.Name]; found && said == can {
			continue
		}
		upgradable[p.Set.Name] = can
		p.patch(m, &planning.PodPatch{Reason: "Upgradable", Conditions: []corev1.PodCondition{p.condition(old, upgradable)}})
	}
}

// condition returns the condition with what the sets have found, by name.
func (p *planner) condition(old *corev1.PodCondition, upgradable map[string]bool) corev1.PodCondition {
	// Names and Booleans can be encoded.
	message, _ := json.Marshal(upgradable)
	c := corev1.PodCondition{
		Type: v1alpha1.PodSidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: "AllSidecarsetUpgradable", Message: string(message),
		LastTransitionTime: metav1.NewTime(p.Now),
	}
	if slices.Contains(slices.Collect(maps.Values(upgradable)), false) {
		c.Status, c.Reason = corev1.ConditionFalse, "UpdateImmutableField"
	}
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}
