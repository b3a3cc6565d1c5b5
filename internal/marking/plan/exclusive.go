// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
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
	// Ticket is the label that a pod has before and as long as it has the marks of the policy. It stays the same if the
	// marker is deleted and created again.
	Ticket string
	marker *Marker
}

// ticketBytes is the length of the hash of a policy. If two policies of a namespace have the same, each waits for pods that
// have the marks of the other.
const ticketBytes = 5

func (m *Marker) exclusivesOf(id identity.ID, probe *v1alpha1.PodContainerProbe) []Exclusive {
	var found []Exclusive
	for i := range probe.MarkerPolicy {
		if policy := &probe.MarkerPolicy[i]; policy.Exclusive != nil {
			hash := sha256.Sum256([]byte(id.String() + "#" + string(policy.State)))
			ticket := v1alpha1.ExclusiveTicketPrefix + hex.EncodeToString(hash[:ticketBytes])
			found = append(found, Exclusive{ID: id, Policy: policy, Ticket: ticket, marker: m})
		}
	}
	return found
}

// Exclusives returns the exclusive policies of the marker. They must not be modified.
func (m *Marker) Exclusives() []Exclusive { return m.exclusives }

// Group returns the group of the pod. It returns false if the pod is in none, because the marker does not select
// it, or because it does not have the label perLabel.
func (e Exclusive) Group(pod *corev1.Pod) (string, bool) {
	label := e.Policy.Exclusive.PerLabel
	switch {
	case !e.marker.Selects(pod):
		return "", false
	case label == "":
		return "", true
	}
	value, found := pod.Labels[label]
	return value, found
}

// IsIn reports whether the pod is in the group.
func (e Exclusive) IsIn(pod *corev1.Pod, group string) bool {
	own, grouped := e.Group(pod)
	return grouped && own == group
}

// ErrExclusiveValue means that a policy sets a mark of an exclusive policy.
var ErrExclusiveValue = errors.New("must not be a value of an exclusive policy: several pods would have it")

// ErrGroupLabel means that a probe sets the label perLabel of its own exclusive policy.
var ErrGroupLabel = errors.New("must not be perLabel of an exclusive policy of the probe: the pod would change its group with each state")

// checkExclusive returns an error if a policy sets a label or annotation to the value of an exclusive
// policy for another state, or the label of its groups.
func checkExclusive(policies []v1alpha1.ProbeMarkerPolicy) error {
	for i := range policies {
		if policies[i].Exclusive == nil {
			continue
		}
		for j := range policies {
			if label := policies[i].Exclusive.PerLabel; label != "" && slices.Contains(policies[j].LabelKeys(), label) {
				return fmt.Errorf("markerPolicy[%d].labels: %q is invalid: %w", j, label, ErrGroupLabel)
			}
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
