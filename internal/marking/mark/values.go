// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"fmt"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// ValueRefusal is a key that a pod does not have because the message of the probe has no valid value
// for it.
type ValueRefusal struct {
	// Probe declares the key.
	Probe identity.ID
	// Key is the label or annotation.
	Key Key
	// Refusal is why the pod does not have it.
	Refusal *extract.Refusal
}

// String describes the refusal in one line.
func (r ValueRefusal) String() string {
	return fmt.Sprintf("%s is not set: %s: %s", r.Key, r.Refusal.Reason, r.Refusal.Detail)
}

// RefusedValues returns the keys that the policies for the states declare that the marks follow, and that the
// messages have no valid value for, in the order of the probes and of the policies. It omits keys
// that belong to another probe. owned are the marks that Seamark owns on the pod.
func RefusedValues(probes []plan.PlannedProbe, report PodReport, owned Marks) []ValueRefusal {
	var refused []ValueRefusal
	var claims Claims
	if report.Outage.Cause != "" {
		claims, _ = Claim(probes)
	}
	for _, probe := range probes {
		state, known := report.Effective(probe, claims, owned)
		if !known {
			continue
		}
		for i := range probe.Source.MarkerPolicy {
			policy := &probe.Source.MarkerPolicy[i]
			if policy.State != state.State {
				continue
			}
			make(Marks).addFrom(policy, state.Message, func(key Key, refusal *extract.Refusal) {
				if claims == nil {
					claims, _ = Claim(probes)
				}
				if claims[key] == probe.ID {
					refused = append(refused, ValueRefusal{Probe: probe.ID, Key: key, Refusal: refusal})
				}
			})
		}
	}
	return refused
}

// addFrom adds the labels and annotations of the policy whose values are in the message. It calls
// refused, unless it is nil, for those that have no valid value there.
func (m Marks) addFrom(policy *v1alpha1.ProbeMarkerPolicy, message string, refused func(Key, *extract.Refusal)) {
	add := func(key Key, text string, refusal *extract.Refusal) {
		switch {
		case refusal == nil:
			m[key] = Value{Text: text}
		case refused != nil:
			refused(key, refusal)
		}
	}
	for i := range policy.LabelsFrom {
		text, refusal := extract.Label(message, &policy.LabelsFrom[i])
		add(Label(policy.LabelsFrom[i].Key), text, refusal)
	}
	for i := range policy.AnnotationsFrom {
		text, refusal := extract.Annotation(message, &policy.AnnotationsFrom[i])
		add(Annotation(policy.AnnotationsFrom[i].Key), text, refusal)
	}
}
