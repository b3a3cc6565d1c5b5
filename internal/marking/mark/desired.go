// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// States are the reported states of one pod's probes.
type States map[identity.ID]v1alpha1.ContainerProbeState

// PodReport is what the agent on the pod's node, or the provider of its virtual node,
// reported about the pod.
type PodReport struct {
	// Reported is whether the agent has reported about the pod. Until then no state is known,
	// and the pod keeps its marks. Agents that report in the status of the NodePodProbe report
	// about all pods of the node at once.
	Reported bool
	// States are the pod's states.
	States States
	// Provider is whether the states come from the provider of a virtual node, which writes
	// the pod's conditions itself.
	Provider bool
	// Outage is since when the states are not current: see plan.StaleAfter.
	Outage staleness.Outage
	// Held are the probes whose states have exclusive marks that the pod may not have. It is nil if
	// there are none.
	Held map[identity.ID]Hold
}

// Conflict is a key that two probes of a pod declare.
type Conflict struct {
	// Key is the key that both declare.
	Key Key
	// Winner is the probe whose mark the pod has. Loser is the other one.
	Winner, Loser identity.ID
}

// Claims maps each key of a pod to the probe that it belongs to.
type Claims map[Key]identity.ID

// Claim gives every key that the probes declare, in any state, to the first probe that
// declares it, and returns the conflicts in the order of the losers. The probes are in
// the order of plan.PodPlan.
func Claim(probes []plan.PlannedProbe) (Claims, []Conflict) {
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
	var declared []Key
	if probe.PodConditionType != "" {
		declared = append(declared, ConditionType(probe.PodConditionType))
	}
	for i := range probe.MarkerPolicy {
		policy := &probe.MarkerPolicy[i]
		for _, key := range policy.LabelKeys() {
			declared = append(declared, Label(key))
		}
		for _, key := range policy.AnnotationKeys() {
			declared = append(declared, Annotation(key))
		}
	}
	slices.SortFunc(declared, compareKeys)
	return slices.Compact(declared)
}

// add adds the labels and annotations of the policy whose values do not depend on the message.
func (m Marks) add(policy *v1alpha1.ProbeMarkerPolicy) {
	for name, value := range policy.Labels {
		m[Label(name)] = Value{Text: value}
	}
	for name, value := range policy.Annotations {
		m[Annotation(name)] = Value{Text: value}
	}
}

// Desired returns the complete marks of a pod, given its planned probes, their reported
// states, and the marks that Seamark owns on the pod now. It ignores states of probes that
// are not planned.
func Desired(probes []plan.PlannedProbe, report PodReport, owned Marks) Marks {
	claims, _ := Claim(probes)
	desired := make(Marks)
	for _, probe := range probes {
		for key, value := range report.marks(probe, claims, owned) {
			if claims[key] == probe.ID {
				desired[key] = value
			}
		}
	}
	return desired
}

// marks returns the marks of the probe, as if no other probe declared them. As long as nothing is reported
// about the pod, they are those that it has.
func (r PodReport) marks(probe plan.PlannedProbe, claims Claims, owned Marks) Marks {
	if r.Outage.Cause != "" {
		// The marks of the probe are needed only then.
		if state, stale := r.stale(probe, claims, owned); stale {
			return reasonedMarks(probe.Source, state, r.Provider, owned, v1alpha1.ReasonStale)
		}
	}
	state, known := r.State(probe)
	switch hold := r.Held[probe.ID]; {
	case known && hold == Lost:
		return reasonedMarks(probe.Source, state, r.Provider, owned, v1alpha1.ReasonClaimLost)
	case known && hold == Waiting:
		return owned.OfProbe(claims, probe.ID)
	case known:
		return marksOf(probe.Source, state, r.Provider, owned)
	case r.Reported:
		return nil
	default:
		return owned.OfProbe(claims, probe.ID)
	}
}

func marksOf(probe *v1alpha1.PodContainerProbe, state v1alpha1.ContainerProbeState, provider bool, owned Marks) Marks {
	marks := make(Marks)
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; policy.State == state.State {
			marks.add(policy)
			marks.addFrom(policy, state.Message, nil)
		}
	}
	if probe.PodConditionType == "" {
		return marks
	}
	key := ConditionType(probe.PodConditionType)
	if !provider {
		marks[key] = Value{Condition: condition(state)}
	} else if value, found := owned[key]; found {
		// The provider has not taken over all fields of the condition yet.
		marks[key] = value
	}
	return marks
}

func condition(state v1alpha1.ContainerProbeState) Condition {
	return Condition{
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

// Provided returns what the provider of a virtual node reports about the pod through the
// conditions that the probes declare: True means Succeeded, False means Failed, any other
// status Unknown, and no status no report. These conditions belong to the provider and are
// not marks. A condition that Seamark set while the pod's node had a kubelet stays until
// the provider sets it, field by field.
func Provided(pod *corev1.Pod, probes []plan.PlannedProbe) PodReport {
	report := PodReport{Reported: true, Provider: true, States: make(States, len(probes))}
	for _, probe := range probes {
		for i := range pod.Status.Conditions {
			c := &pod.Status.Conditions[i]
			if string(c.Type) == probe.Source.PodConditionType && c.Status != "" {
				report.States[probe.ID] = v1alpha1.ContainerProbeState{
					Name:               probe.ID.String(),
					State:              stateOf(c.Status),
					Message:            c.Message,
					LastProbeTime:      c.LastProbeTime,
					LastTransitionTime: c.LastTransitionTime,
				}
			}
		}
	}
	return report
}

// stateOf is the inverse of conditionStatus.
func stateOf(status corev1.ConditionStatus) v1alpha1.ProbeState {
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed} {
		if conditionStatus(state) == status {
			return state
		}
	}
	return v1alpha1.ProbeUnknown
}
