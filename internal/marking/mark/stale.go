// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// State returns the state of the probe: the one that was reported, or Unknown if that is stale. It
// returns false if there is none: a state of an earlier marker with the same name is not a state of the
// probe.
func (r PodReport) State(probe plan.PlannedProbe) (v1alpha1.ContainerProbeState, bool) {
	state, known := r.States[probe.ID]
	if !known {
		return state, false
	}
	return r.Evaluate(probe, state)
}

// Evaluate returns what a reported state of the probe counts as, as State does. It does not read r.States.
func (r PodReport) Evaluate(probe plan.PlannedProbe, state v1alpha1.ContainerProbeState) (v1alpha1.ContainerProbeState, bool) {
	if !identity.SamePlan(probe.Plan.Plan, state.Plan) {
		return v1alpha1.ContainerProbeState{}, false
	}
	if after, stale := r.staleAfter(probe); stale {
		return r.outdated(state, after), true
	}
	if r.Held[probe.ID] == Lost {
		state.State, state.Message = v1alpha1.ProbeUnknown, claimLost
	}
	return state, true
}

// Effective returns the state whose marks the pod gets: like State, except that a state stays stale as long as it is not known
// to be current. owned are the marks that Seamark owns on the pod.
func (r PodReport) Effective(probe plan.PlannedProbe, claims Claims, owned Marks) (v1alpha1.ContainerProbeState, bool) {
	if state, stale := r.stale(probe, claims, owned); stale {
		return state, true
	}
	return r.State(probe)
}

// Counted returns what a reported state of the probe counts as in the status of its marker, as Evaluate does, and whether it is
// stale. It stays stale, since the same time, as the marks do, so that a restart of the manager does not change the counts. It does not
// read r.States.
func (r PodReport) Counted(probe plan.PlannedProbe, state v1alpha1.ContainerProbeState, claims Claims, owned Marks) (
	counted v1alpha1.ContainerProbeState, stale, known bool,
) {
	counted, known = r.Evaluate(probe, state)
	if !known || r.Outage.Cause == "" || probe.Source.StaleAfterSeconds == nil {
		return counted, false, known
	}
	mine := owned.OfProbe(claims, probe.ID)
	if stale = r.IsStale(probe) || r.wasStale(probe, state, claims, mine); !stale {
		return counted, false, known
	}
	counted.State = v1alpha1.ProbeUnknown
	switch shown := mine[ConditionType(probe.Source.PodConditionType)].Condition; {
	case shown.Reason == v1alpha1.ReasonStale:
		counted.LastTransitionTime = shown.LastTransitionTime
	case r.Outage.MayBeLonger():
		// The next manager would not know since when it is stale.
		counted.LastTransitionTime = state.LastTransitionTime
	}
	return counted, true, known
}

// IsStale reports whether the state of the probe, if it has one, is stale.
func (r PodReport) IsStale(probe plan.PlannedProbe) bool {
	_, stale := r.staleAfter(probe)
	return stale
}

func (r PodReport) staleAfter(probe plan.PlannedProbe) (time.Duration, bool) {
	if r.Outage.Cause == "" {
		return 0, false
	}
	after, set := plan.StaleAfter(probe.Source)
	return after, set && r.Outage.MakesStale(after)
}

// outdated returns the state that a stale one counts as.
func (r PodReport) outdated(state v1alpha1.ContainerProbeState, after time.Duration) v1alpha1.ContainerProbeState {
	state.State = v1alpha1.ProbeUnknown
	state.Message = fmt.Sprintf("The node or its agent has not been ready for %s.", after)
	state.LastTransitionTime = metav1.NewTime(r.Outage.Since.Add(after).Truncate(time.Second))
	return state
}

// stale returns the state that a stale one counts as, and whether the marks follow it. The marks of the
// probe that the pod has show a state that is not reported any more, such as that of a node
// that is gone. While it is not sure how long an outage has lasted, they also show that the state was
// stale before the manager was started: it does not become current without evidence.
func (r PodReport) stale(probe plan.PlannedProbe, claims Claims, owned Marks) (v1alpha1.ContainerProbeState, bool) {
	if r.Outage.Cause == "" || probe.Source.StaleAfterSeconds == nil {
		return v1alpha1.ContainerProbeState{}, false
	}
	mine := owned.OfProbe(claims, probe.ID)
	state, known := r.State(probe)
	if !known && (r.Reported || len(mine) == 0) {
		return state, false
	}
	after, reached := r.staleAfter(probe)
	if reached || r.wasStale(probe, state, claims, mine) {
		return r.outdated(state, after), true
	}
	return state, false
}

// wasStale reports whether the marks of the probe, mine, may be those of a stale state. A condition or a key that
// belongs to another probe says nothing about this one. If the marks are the same for the reported state, they do not
// tell, and the state counts as reported.
func (r PodReport) wasStale(probe plan.PlannedProbe, reported v1alpha1.ContainerProbeState, claims Claims, mine Marks) bool {
	if !r.Outage.Ended.IsZero() {
		return false
	}
	condition := ConditionType(probe.Source.PodConditionType)
	if condition.Name != "" && !r.Provider && claims[condition] == probe.ID {
		return mine[condition].Condition.Reason == v1alpha1.ReasonStale
	}
	if !r.Outage.MayBeLonger() {
		return false
	}
	texts := mine.filter(func(key Key) bool { return key.Kind != KindCondition })
	shows := func(state v1alpha1.ContainerProbeState) bool {
		return texts.Equal(marksOf(probe.Source, state, true, nil).OfProbe(claims, probe.ID))
	}
	return shows(v1alpha1.ContainerProbeState{State: v1alpha1.ProbeUnknown}) && !shows(reported)
}

// reasonedMarks returns the marks of a state that counts as Unknown for the reason. A condition that says
// so already stays as it is.
func reasonedMarks(probe *v1alpha1.PodContainerProbe, state v1alpha1.ContainerProbeState, provider bool, owned Marks, reason string) Marks {
	marks := marksOf(probe, state, provider, owned)
	key := ConditionType(probe.PodConditionType)
	value, found := marks[key]
	switch {
	case !found || provider:
	case owned[key].Condition.Reason == reason && owned[key].Condition.Status != "":
		marks[key] = owned[key]
	default:
		value.Condition.Reason = reason
		marks[key] = value
	}
	return marks
}
