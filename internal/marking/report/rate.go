// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// rate limits changed messages: burst without a delay, then one per refill.
type rate struct {
	burst  int
	refill time.Duration
}

// messagesOfProbe is the rate of one probe with MessageUpdatesLimited.
func messagesOfProbe() rate { return rate{burst: 3, refill: time.Minute} }

// messagesOfNode is the rate of all pods of a node with MessageUpdatesImmediate. Each token causes one
// write of a slice at most, and one of the manager to the pod. The messages of all pods of a node of
// the usual size may change at once. Afterwards, a node causes at most as many writes per second as it
// sends batches by default.
func messagesOfNode() rate { return rate{burst: 110, refill: 100 * time.Millisecond} }

// bucket contains the tokens of a rate. The zero bucket is full. It is immutable: take returns a new
// bucket.
type bucket struct {
	// full is when the bucket is full again, if no token is taken until then.
	full time.Time
}

// due returns when the bucket has a token, which may be in the past.
func (b bucket) due(r rate) time.Time { return b.full.Add(-time.Duration(r.burst-1) * r.refill) }

// tokens returns how many tokens the bucket has.
func (b bucket) tokens(now time.Time, r rate) int {
	missing := max(0, b.full.Sub(now)+r.refill-1) / r.refill
	return max(0, r.burst-int(missing))
}

// take takes a token. An empty bucket stays empty.
func (b bucket) take(now time.Time, r rate) bucket {
	if b.full.Before(now) {
		b.full = now
	}
	if empty := now.Add(time.Duration(r.burst-1) * r.refill); b.full.After(empty) {
		b.full = empty
	}
	return bucket{full: b.full.Add(r.refill)}
}

// turn is a pod that waits for a token of the node.
type turn struct {
	// index identifies the pod.
	index     int
	namespace string
	uid       string
	// last is when the pod last took a token, and lastOfNamespace when a pod of the namespace did.
	last, lastOfNamespace time.Time
}

// inTurn returns the first n pods, in turn: a pod of each namespace, beginning with the namespace that
// took a token longest ago, then another pod of each. The pods of a namespace follow each other in the
// same way. So a pod waits for at most as many tokens as its namespace has pods that wait, times the
// number of namespaces that have some.
func inTurn(waiting []turn, n int) []turn {
	slices.SortFunc(waiting, func(a, b turn) int { return cmp.Or(a.last.Compare(b.last), strings.Compare(a.uid, b.uid)) })
	round, ahead := make(map[string]int, len(waiting)), map[string]int{}
	for _, t := range waiting {
		round[t.uid] = ahead[t.namespace]
		ahead[t.namespace]++
	}
	slices.SortStableFunc(waiting, func(a, b turn) int {
		return cmp.Or(cmp.Compare(round[a.uid], round[b.uid]), a.lastOfNamespace.Compare(b.lastOfNamespace), strings.Compare(a.namespace, b.namespace))
	})
	return waiting[:min(n, len(waiting))]
}
