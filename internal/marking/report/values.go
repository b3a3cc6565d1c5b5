// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// MessageDue returns when the message of a probe that replaces the one before, in the same state, may be
// reported. It is due at once if it changes a value that marks the pod, or if the state has changed and
// changed back since the last report. Otherwise it needs a token: of the node with
// MessageUpdatesImmediate, or else of the probe.
func (l Record) MessageDue(p Plan, key identity.Key, state thresholds.State, before string) time.Time {
	planned, reported := p.find(key), l.pod(string(key.PodUID))
	if planned == nil || !extract.SameValues(planned.Values, state.State, before, state.Message) {
		return time.Time{}
	}
	switch at := reported.find(planned.Name, 0); {
	case reported.changedBack(at, state.LastTransition):
		return time.Time{}
	case planned.MessageUpdates == v1alpha1.MessageUpdatesImmediate:
		return l.tokens.due(messagesOfNode())
	default:
		return reported.messagesAt(at).tokens.due(messagesOfProbe())
	}
}

// find returns a planned probe, or nil.
func (p Plan) find(key identity.Key) *v1alpha1.ContainerProbe {
	for i := range p.Pods {
		pod := &p.Pods[i]
		if pod.UID != string(key.PodUID) {
			continue
		}
		for j := range pod.Probes {
			if planned, err := identity.KeyOf(pod, &pod.Probes[j]); err == nil && planned == key {
				return &pod.Probes[j]
			}
		}
	}
	return nil
}

// hasOtherValues reports whether the values of two messages in the same state differ. The messages
// are as long as they are reported: what does not fit changes no mark.
func (c *candidate) hasOtherValues(state v1alpha1.ProbeState, a, b string) bool {
	return !extract.SameValues(c.planned.Values, state, a, b)
}

// shorten returns the message with at most limit encoded bytes. If a message with values is
// truncated, it ends with extract.Cut, so that a part of a value is not taken for the value.
func (c *candidate) shorten(message string, limit int) string {
	short := shorten(message, limit)
	switch {
	case len(short) == len(message) || len(c.planned.Values) == 0:
		return short
	case limit < len(extract.Cut):
		return ""
	default:
		return shorten(message, limit-len(extract.Cut)) + extract.Cut
	}
}
