// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exclusive decides which pod of a group has the marks of an exclusive policy. It is pure.
//
// At no resource version do two pods of a group have the marks, although managers have old views,
// although two of them may believe to lead, and although a request may arrive long after its sender has
// ended. Two questions are separate. Who should have the marks: the Election answers, and an answer from an old view costs
// time only. Who may have them: the ticket, a label of the pod that names the policy and the group.
//
// Rules for writes, which the callers keep:
//
//   - A write with the marks has the resource version of the pod as a condition: a version that has the marks
//     already, or one with the ticket for which the API server has answered, from that version or a later one, that no
//     other pod in the group has the ticket.
//   - A pod has the ticket before the marks, and as long as it has them: a write that removes the ticket removes the marks.
//   - A write that moves a pod to another group removes both: they were decided for the group that it leaves.
//   - A write without the marks has no condition.
//
// Why this suffices: pods a and b have the marks, which were written on their versions va and vb, of which va is older.
// The answer for b is not older than vb. As of this answer, pod a did not have the ticket in the group, so pod a had changed
// since va. A write on va that is still under way then fails, and pod a needs another ticket, which is younger than
// that of pod b: its answer names pod b.
package exclusive

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Seat is what one pod at a time can have: the marks of a policy in a group.
type Seat struct {
	// Probe and State identify the policy among those of a marker.
	Probe, State string
	// Group is the value of the label perLabel, and empty without perLabel.
	Group string
}

// Candidate is what is known about a pod of a group.
type Candidate struct {
	// Name and UID identify the pod.
	Name string
	UID  types.UID
	// Claims is whether the pod's probe has the state of the policy.
	Claims bool
	// Since is when the state last changed, in whole seconds.
	Since time.Time
	// Term is the term in the message, or nil if there is none.
	Term *int64
	// Marked is whether the pod has one of the marks.
	Marked bool
	// Ticket is whether the pod has the ticket for the group.
	Ticket bool
	// Unreported is whether nothing is reported about the pod, and its node is not known to be lost.
	Unreported bool
}

// Matters reports whether the candidate can change who has the marks.
func (c Candidate) Matters() bool { return c.Claims || c.Marked || c.Ticket }

// keeps reports whether the pod keeps its marks, because nothing is known that speaks against it: it got them from Seamark.
func (c Candidate) keeps() bool { return c.Unreported && c.Marked && c.Ticket }

// contends reports whether the pod can win.
func (c Candidate) contends() bool { return c.Claims || c.keeps() }

// equal reports whether both are the same for an election.
func (c Candidate) equal(other Candidate) bool {
	terms := compareTerms(c.Term, other.Term) == 0
	c.Term, other.Term = nil, nil
	since := c.Since.Equal(other.Since)
	c.Since, other.Since = time.Time{}, time.Time{}
	return terms && since && c == other
}

// compare is negative if a has the better claim: the holder about which nothing is reported, then the highest term, then
// the latest change of the state, then the pod that has the marks with the ticket, then one with the ticket, then the first name.
func compare(a, b Candidate) int {
	return cmp.Or(
		-compareBools(a.keeps(), b.keeps()), -compareTerms(a.Term, b.Term), -a.Since.Compare(b.Since),
		-compareBools(a.Marked && a.Ticket, b.Marked && b.Ticket), -compareBools(a.Ticket, b.Ticket), strings.Compare(a.Name, b.Name),
	)
}

func compareTerms(a, b *int64) int {
	if a == nil || b == nil {
		return compareBools(a != nil, b != nil)
	}
	return cmp.Compare(*a, *b)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
