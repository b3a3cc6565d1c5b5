// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// States are the reported states of one pod's probes.
type States map[probeid.ID]v1alpha1.ContainerProbeState

// Report is what the agent of the pod's node has said of the pod, or the provider of the
// virtual kubelet that the node is.
type Report struct {
	// Reported is whether the agent has reported on its node at all. While it hasn't,
	// nothing is known of any state, and the pod keeps the marks it has.
	Reported bool
	// States are the pod's states.
	States States
	// Provider is whether the provider of a virtual kubelet says it, by conditions that
	// it writes itself.
	Provider bool
}

// Conflict is a key that two probes of a pod declare.
type Conflict struct {
	// Key is what both declare.
	Key Key
	// Winner is the probe whose mark the pod carries, Loser the one whose doesn't.
	Winner, Loser probeid.ID
}

// Claims tells which probe each key of a pod belongs to.
type Claims map[Key]probeid.ID

// Claim gives every key that the probes declare, in whatever state, to the first probe
// that declares it, and returns the conflicts in the order of the losers. The probes
// come in the order of plan.PodPlan.
func Claim(probes []plan.Probe) (Claims, []Conflict) {
	claims := make(Claims)
	var conflicts []Conflict
	for _, probe := range probes {
		for _, key := range Declared(probe.Source) {
			winner, taken := claims[key]
			switch {
			case !taken:
				claims[key] = probe.ID
			case winner != probe.ID:
				conflicts = append(conflicts, Conflict{Key: key, Winner: winner, Loser: probe.ID})
			}
		}
	}
	return claims, conflicts
}

// Declared returns the keys that the probe declares in any state, ordered by kind and
// name, each once.
func Declared(probe *v1alpha1.PodContainerProbe) []Key {
	var all Marks
	if probe.PodConditionType != "" {
		all.setCondition(Condition{Type: probe.PodConditionType})
	}
	for i := range probe.MarkerPolicy {
		for key := range probe.MarkerPolicy[i].Labels {
			all.setLabel(key, "")
		}
		for key := range probe.MarkerPolicy[i].Annotations {
			all.setAnnotation(key, "")
		}
	}
	return all.Keys()
}

// Desired returns the complete marks of a pod with the planned probes and the states
// reported of it, of which owned are on the pod now. States of probes that are not
// planned count for nothing.
func Desired(probes []plan.Probe, report Report, owned Marks) Marks {
	claims, _ := Claim(probes)
	if !report.Reported {
		keys := make(map[Key]bool, len(claims))
		for key := range claims {
			keys[key] = true
		}
		return owned.Only(keys)
	}
	var marks Marks
	for _, probe := range probes {
		state, known := report.States[probe.ID]
		if !known {
			continue
		}
		marks.add(claims, probe, state)
		conditionType := probe.Source.PodConditionType
		switch own, found := owned.Conditions[conditionType]; {
		case conditionType == "" || claims[Key{KindCondition, conditionType}] != probe.ID:
		case !report.Provider:
			marks.setCondition(condition(conditionType, state))
		case found:
			// The provider has not taken it over in full yet.
			marks.setCondition(own)
		}
	}
	return marks
}

// add makes the labels and annotations of one probe's state, but for the keys that belong
// to another.
func (m *Marks) add(claims Claims, probe plan.Probe, state v1alpha1.ContainerProbeState) {
	for i := range probe.Source.MarkerPolicy {
		policy := &probe.Source.MarkerPolicy[i]
		if policy.State != state.State {
			continue
		}
		for key, value := range policy.Labels {
			if claims[Key{KindLabel, key}] == probe.ID {
				m.setLabel(key, value)
			}
		}
		for key, value := range policy.Annotations {
			if claims[Key{KindAnnotation, key}] == probe.ID {
				m.setAnnotation(key, value)
			}
		}
	}
}

func condition(conditionType string, state v1alpha1.ContainerProbeState) Condition {
	return Condition{
		Type:               conditionType,
		Status:             conditionStatus(state.State),
		Message:            state.Message,
		LastProbeTime:      metav1.Time{Time: state.LastProbeTime.UTC()},
		LastTransitionTime: metav1.Time{Time: state.LastTransitionTime.UTC()},
	}
}

func conditionStatus(state v1alpha1.ProbeState) corev1.ConditionStatus {
	switch state {
	case v1alpha1.ProbeSucceeded:
		return corev1.ConditionTrue
	case v1alpha1.ProbeFailed:
		return corev1.ConditionFalse
	default:
		return corev1.ConditionUnknown
	}
}
