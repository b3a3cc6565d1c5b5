// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Exclusive is a policy of a marker whose labels and annotations at most one pod of a group has.
type Exclusive struct {
	// ID is the probe of the policy.
	ID identity.ID
	// Policy has the field exclusive. It belongs to the marker and must not be modified.
	Policy *v1alpha1.ProbeMarkerPolicy
}

func exclusives(id identity.ID, probe *v1alpha1.PodContainerProbe) []Exclusive {
	var found []Exclusive
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; policy.Exclusive != nil {
			found = append(found, Exclusive{ID: id, Policy: policy})
		}
	}
	return found
}

// Exclusives returns the exclusive policies of the marker. They must not be modified.
func (m *Marker) Exclusives() []Exclusive { return m.exclusives }

// Group returns the group of the pod. It returns false if the pod is in none, because it does not have
// the label perLabel.
func (e Exclusive) Group(pod *corev1.Pod) (string, bool) {
	label := e.Policy.Exclusive.PerLabel
	if label == "" {
		return "", true
	}
	value, found := pod.Labels[label]
	return value, found
}

// IsIn reports whether the pod is in the group.
func (e Exclusive) IsIn(pod *corev1.Pod, group string) bool {
	of, grouped := e.Group(pod)
	return grouped && of == group
}

// IsHolder reports whether the holder is that of the group.
func (e Exclusive) IsHolder(holder v1alpha1.ExclusiveHolder, group string) bool {
	return holder.Probe == e.ID.Probe && holder.State == e.Policy.State && holder.Group == group
}

// Holder returns the holder of the group among those of the marker, and whether there is one.
func (e Exclusive) Holder(holders []v1alpha1.ExclusiveHolder, group string) (v1alpha1.ExclusiveHolder, bool) {
	for _, holder := range holders {
		if e.IsHolder(holder, group) {
			return holder, true
		}
	}
	return v1alpha1.ExclusiveHolder{}, false
}

// ErrExclusiveValue means that a policy sets a mark of an exclusive policy.
var ErrExclusiveValue = errors.New("must not be a value of an exclusive policy: several pods would have it")

// checkExclusive returns an error if a policy sets a label or annotation to the value of an exclusive
// policy for another state.
func checkExclusive(policies []v1alpha1.ProbeMarkerPolicy) error {
	for i := range policies {
		if policies[i].Exclusive == nil {
			continue
		}
		for j := range policies {
			if i == j {
				continue
			}
			if key := shared(policies[i].Labels, policies[j].Labels); key != "" {
				return fmt.Errorf("markerPolicy[%d].labels: %q is invalid: %w", j, key, ErrExclusiveValue)
			}
			if key := shared(policies[i].Annotations, policies[j].Annotations); key != "" {
				return fmt.Errorf("markerPolicy[%d].annotations: %q is invalid: %w", j, key, ErrExclusiveValue)
			}
		}
	}
	return nil
}

// shared returns the first key that has the same value in both, or an empty string.
func shared(a, b map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if value, found := b[key]; found && value == a[key] {
			return key
		}
	}
	return ""
}
