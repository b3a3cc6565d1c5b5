// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Hold is why a pod does not have the exclusive marks of its state.
type Hold string

// The reasons.
const (
	// Lost means that another pod has them: the state counts as Unknown.
	Lost Hold = "Lost"
	// Waiting means that the pod gets them as soon as no other pod can have them: it keeps its marks
	// until then.
	Waiting Hold = "Waiting"
)

// claimLost is the message of a state that counts as Unknown. It does not name the other pod, because the
// mark would then change with it.
const claimLost = "Another pod of the group has the marks of the state."

// Fixed returns the labels and annotations of the policy whose values do not depend on the message.
func Fixed(policy *v1alpha1.ProbeMarkerPolicy) Marks {
	marks := make(Marks)
	marks.add(policy)
	return marks
}

// In returns those of the labels and annotations that the pod has. Caches do not have the values of
// annotations that Seamark does not own: the pod counts as having them.
func (m Marks) In(pod *corev1.Pod) Marks {
	return m.filter(func(key Key) bool { return m[key].in(pod, key) })
}

// AnyIn reports whether the pod has one of them, as In does.
func (m Marks) AnyIn(pod *corev1.Pod) bool {
	for key, value := range m {
		if value.in(pod, key) {
			return true
		}
	}
	return false
}

func (v Value) in(pod *corev1.Pod, key Key) bool {
	text, found := key.In(pod)
	return found && (text == v.Text || key.Kind == KindAnnotation && text == "")
}

// Unclaimed returns the marks whose keys do not belong to another probe.
func (m Marks) Unclaimed(claims Claims, probe identity.ID) Marks {
	return m.filter(func(key Key) bool {
		owner, claimed := claims[key]
		return !claimed || owner == probe
	})
}

// Unreported reports whether nothing is reported about the pod, and its node is not known to be lost.
func (r PodReport) Unreported() bool {
	return !r.Reported && !r.Outage.Lost()
}

// Intersect returns the marks that both have with the same value.
func (m Marks) Intersect(other Marks) Marks {
	return m.filter(func(key Key) bool {
		value, found := other[key]
		return found && value.equal(m[key])
	})
}
