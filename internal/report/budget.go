// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode/utf8"

	"github.com/seamark-dev/seamark/internal/fair"
	"github.com/seamark-dev/seamark/internal/text"
)

const (
	// MaxBytes is the budget of a report in encoded bytes. etcd stores at most 1.5 MiB per
	// request by default, for the report, the plan (see plan.MaxBytes) and the metadata.
	// States are always reported, so the budget limits only the messages.
	MaxBytes = 624 << 10

	// maxMessageBytes is the maximum length of a message.
	maxMessageBytes = 1024

	// podBytes and stateBytes are the maximum encoded bytes of the entry of a pod and of a
	// state, without the values that have no fixed length.
	podBytes   = len(`{"name":"","namespace":"","uid":"","probeStates":[]},`)
	stateBytes = len(`{"name":"","state":"Succeeded","lastProbeTime":"2006-01-02T15:04:05Z",` +
		`"lastTransitionTime":"2006-01-02T15:04:05Z","plan":"","containerID":"","message":""},`)
	// statusBytes is the maximum of the rest of the status.
	statusBytes = 256
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
	message = text.Truncate(message, maxMessageBytes)
	if limit, limited := l[namespace]; limited {
		return shorten(message, limit)
	}
	return message
}

// limitsOf returns the limits with which the report of the candidates is within the budget. If
// all messages fit, there are none. Otherwise the namespaces share what the states leave: one
// that needs less than an equal share gets everything and leaves the rest to the others. All
// messages of a namespace have the same limit.
func limitsOf(plan Plan, candidates [][]candidate, maxBytes int) limits {
	free, total := freeBytes(plan, candidates, maxBytes), 0
	messages, demands := map[string][]int{}, map[string]int{}
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		for j := range candidates[i] {
			if n := candidates[i][j].messageBytes(); n > 0 {
				messages[pod.Namespace] = append(messages[pod.Namespace], n)
				demands[pod.Namespace] += n
				total += n
			}
		}
	}
	if total <= free {
		return nil
	}
	limited, share := limits{}, fair.Share(demands, free)
	for namespace, demand := range demands {
		if demand > share {
			limited[namespace] = limitWithin(messages[namespace], share)
		}
	}
	return limited
}

// freeBytes returns what the pods and states leave of the budget for messages and errors. It is
// negative if they exceed the budget.
func freeBytes(plan Plan, candidates [][]candidate, maxBytes int) int {
	free := maxBytes - statusBytes
	for i := range plan.Pods {
		pod := &plan.Pods[i]
		free -= podBytes + len(pod.Name) + len(pod.Namespace) + len(pod.UID)
		for j := range candidates[i] {
			c := &candidates[i][j]
			free -= stateBytes + len(c.planned.Name) + len(c.planned.Plan) + max(len(c.state.ContainerID), len(c.reported.ContainerID))
		}
	}
	return free
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

// shorten returns the longest prefix of a valid message that has at most limit encoded bytes and
// ends between two runes.
func shorten(message string, limit int) string {
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
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', strings.ContainsRune("<>&\u2028\u2029", r):
		return len(`\u0000`)
	default:
		return utf8.RuneLen(r)
	}
}
