// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"unicode/utf8"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// maxMessageBytes is the maximum length of a message.
	maxMessageBytes = 1024

	// podBytes and stateBytes are the maximum encoded bytes of the entry of a pod and of a
	// state, without the values that have no fixed length.
	podBytes   = len(`{"name":"","namespace":"","uid":"","probes":[],"errors":[]},`)
	stateBytes = len(`{"name":"","state":"Succeeded","lastProbeTime":"2006-01-02T15:04:05Z",` +
		`"lastTransitionTime":"2006-01-02T15:04:05Z","plan":"","containerID":"","message":""},`)
	// containerIDBytes is the length of the ID of a run of a container in a state.
	containerIDBytes = 13
	// restBytes is the maximum of the rest of a slice, without metadata, and sliceBytes what its pods
	// may take.
	restBytes  = 256
	sliceBytes = MaxBytes - restBytes

	// minTextBytes is what the messages and errors of a pod may take at least, for each probe: a
	// complete message, unless its encoding is longer.
	minTextBytes = maxMessageBytes
)

// budget is what a pod may take of a slice, in encoded bytes. It depends on nothing but the planned
// probes of the pod: other pods and messages neither shorten its messages nor cause a write of them.
type budget struct {
	// states are for the pod and all states, text for the messages and the errors.
	states, text int
	// probes is the number of planned probes.
	probes int
}

// budgetOf returns the budget of a pod: an equal share of a slice, or else as much as its states and
// minTextBytes for each probe need, which leaves room for fewer pods. A pod that needs more than a
// slice has one of its own. Its messages share what the states leave, which may be nothing.
func budgetOf(pod *v1alpha1.PodProbe) budget {
	b := budget{states: podBytes + len(pod.Name) + len(pod.Namespace) + len(pod.UID), probes: len(pod.Probes)}
	for i := range pod.Probes {
		b.states += stateBytes + len(pod.Probes[i].Name) + len(pod.Probes[i].Plan) + containerIDBytes
	}
	b.text = max(sliceBytes/MaxPods-b.states, min(b.probes*minTextBytes, sliceBytes-b.states), 0)
	return b
}

// size is what a pod may take of a slice.
func (b budget) size() int { return b.states + b.text }

// errors is what all errors of the pod may take.
func (b budget) errors() int { return max(b.text/2, minErrorBytes) }

// limit returns the maximum length of each message of the pod with the errors.
func (b budget) limit(errs []v1alpha1.ContainerProbeError) int {
	free := b.text
	for _, e := range errs {
		free -= encodedError(e)
	}
	return max(free, 0) / max(b.probes, 1)
}

// shorten returns the longest prefix of a message that may be reported, has at most limit encoded
// bytes and ends between two runes.
func shorten(message string, limit int) string {
	message = text.Truncate(message, maxMessageBytes)
	if len(message)*len(`\u0000`) <= limit {
		return message
	}
	total := 0
	for i, r := range message {
		if total += encodedRune(r); total > limit {
			return message[:i]
		}
	}
	return message
}

// encodedBytes returns the maximum number of bytes of a valid message in JSON, without quotes.
func encodedBytes(message string) int {
	total := 0
	for _, r := range message {
		total += encodedRune(r)
	}
	return total
}

func encodedRune(r rune) int {
	switch {
	case r >= utf8.RuneSelf:
		if r == '\u2028' || r == '\u2029' {
			return len(`\u2028`)
		}
		return utf8.RuneLen(r)
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', r == '<', r == '>', r == '&':
		return len(`\u0000`)
	default:
		return 1
	}
}
