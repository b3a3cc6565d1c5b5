// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/value"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// ChangesValue reports whether a message that replaces another one in the same state has to be
// reported at once, because it changes a value that marks the pod.
func (p Plan) ChangesValue(key identity.Key, state v1alpha1.ProbeState, before, after string) bool {
	for i := range p.Pods {
		pod := &p.Pods[i]
		if pod.UID != string(key.PodUID) {
			continue
		}
		for j := range pod.Probes {
			if planned, err := identity.KeyOf(pod, &pod.Probes[j]); err == nil && planned == key {
				return !value.Same(pod.Probes[j].Values, state, before, after)
			}
		}
	}
	return false
}

// hasOtherValues reports whether the values of two messages in the same state differ. The messages
// are as long as they are reported: what does not fit changes no mark.
func (c *candidate) hasOtherValues(state v1alpha1.ProbeState, a, b string) bool {
	return !value.Same(c.planned.Values, state, a, b)
}

// shorten returns the message with at most limit encoded bytes. If a message with values is
// truncated, it ends with value.Cut, so that a part of a value is not taken for the value.
func (c *candidate) shorten(message string, limit int) string {
	short := shorten(message, limit)
	switch {
	case len(short) == len(message) || len(c.planned.Values) == 0:
		return short
	case limit < len(value.Cut):
		return ""
	default:
		return shorten(message, limit-len(value.Cut)) + value.Cut
	}
}
