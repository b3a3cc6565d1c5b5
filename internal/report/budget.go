// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode/utf8"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/fair"
	"github.com/seamark-dev/seamark/internal/text"
)

const (
	// maxMessageBytes is the maximum length of a message.
	maxMessageBytes = 1024

	// podBytes and stateBytes are the maximum encoded bytes of the entry of a pod and of a
	// state, without the values that have no fixed length.
	podBytes   = len(`{"name":"","namespace":"","uid":"","probeStates":[],"probeErrors":[]},`)
	stateBytes = len(`{"name":"","state":"Succeeded","lastProbeTime":"2006-01-02T15:04:05Z",` +
		`"lastTransitionTime":"2006-01-02T15:04:05Z","plan":"","containerID":"","message":""},`)
	// containerIDBytes is the length of the ID of a run of a container in a state.
	containerIDBytes = 13
	// restBytes is the maximum of the rest of a slice, without metadata.
	restBytes = 256
)

// messageSteps are the limits of messages in encoded bytes. Their number is small so that a
// message that changes rarely changes the limit of others.
func messageSteps() []int {
	return []int{4096, 2048, 1024, 768, 512, 384, 256, 192, 128, 96, 64, 48, 32, 16, 0}
}

// limits are the maximum encoded bytes of a message by namespace. A namespace without an entry
// has no limit.
type limits map[string]int

// message returns the longest prefix of the message that the namespace may report.
func (l limits) message(namespace, message string) string {
	message = truncate(message)
	if limit, limited := l[namespace]; limited {
		return shorten(message, limit)
	}
	return message
}

// lengths are the encoded bytes of the messages that are not empty, by namespace.
type lengths map[string][]int

func (l lengths) add(namespace string, bytes int) {
	if bytes > 0 {
		l[namespace] = append(l[namespace], bytes)
	}
}

// limitsOf returns the limits with which the messages have at most free bytes. If all of them
// fit, there are none. Otherwise the namespaces share: one that needs less than an equal share
// gets everything and leaves the rest to the others. All messages of a namespace have the same
// limit.
func limitsOf(messages lengths, free int) limits {
	total, demands := 0, make(map[string]int, len(messages))
	for namespace, all := range messages {
		for _, n := range all {
			demands[namespace] += n
			total += n
		}
	}
	limited := limits{}
	if total <= free {
		return limited
	}
	share := fair.Share(demands, free)
	for namespace, demand := range demands {
		if demand > share {
			limited[namespace] = limitWithin(messages[namespace], share)
		}
	}
	return limited
}

// limitWithin returns the largest step with which messages of these lengths are within the share.
func limitWithin(lengths []int, share int) int {
	for _, step := range messageSteps() {
		total := 0
		for _, n := range lengths {
			total += min(n, step)
		}
		if total <= share {
			return step
		}
	}
	return 0
}

// plannedBytes returns the encoded bytes of a pod of which every planned probe has a state,
// without messages and errors.
func plannedBytes(pod *v1alpha1.PodProbe) int {
	bytes := podBytes + len(pod.Name) + len(pod.Namespace) + len(pod.UID)
	for i := range pod.Probes {
		bytes += stateBytes + len(pod.Probes[i].Name) + len(pod.Probes[i].Plan) + containerIDBytes
	}
	return bytes
}

// truncate returns the longest valid prefix of a message that may be reported.
func truncate(message string) string { return text.Truncate(message, maxMessageBytes) }

// shorten returns the longest prefix of a valid message that has at most limit encoded bytes and
// ends between two runes.
func shorten(message string, limit int) string {
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

// longer returns the encoded bytes of the longer of two messages that may be reported.
func longer(a, b string) int {
	a, b = truncate(a), truncate(b)
	switch {
	case strings.HasPrefix(a, b):
		return encodedBytes(a)
	case strings.HasPrefix(b, a):
		return encodedBytes(b)
	default:
		return max(encodedBytes(a), encodedBytes(b))
	}
}
