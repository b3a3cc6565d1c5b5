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

// tell adds the condition to pods that cannot get the latest revision in place, and to those that have been updated in place,
// as OpenKruise does. A pod that this step changes gets it in a later one.
func (p *planner) tell() {
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
		says := map[string]bool{}
		if old != nil && (json.Unmarshal([]byte(old.Message), &says) != nil || says == nil) {
			says = map[string]bool{} // Others can write the condition, too.
		}
		if said, found := says[p.Set.Name]; found && said == can {
			continue
		}
		says[p.Set.Name] = can
		p.patch(m, &planning.PodPatch{Reason: "Upgradable", Conditions: []corev1.PodCondition{p.condition(old, says)}})
	}
}

// condition returns the condition with what the sets say, by name.
func (p *planner) condition(old *corev1.PodCondition, says map[string]bool) corev1.PodCondition {
	// Names and Booleans can be encoded.
	message, _ := json.Marshal(says)
	c := corev1.PodCondition{
		Type: v1alpha1.PodSidecarSetUpgradable, Status: corev1.ConditionTrue, Reason: "AllSidecarsetUpgradable", Message: string(message),
		LastTransitionTime: metav1.NewTime(p.Now),
	}
	if slices.Contains(slices.Collect(maps.Values(says)), false) {
		c.Status, c.Reason = corev1.ConditionFalse, "UpdateImmutableField"
	}
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}
