// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exclusive decides which pod of a group has the marks of an exclusive policy, and when it may get
// them. It is pure.
//
// At no resource version do two pods of a group have the marks, although managers may have old views,
// although two of them may believe to lead, and although a request may arrive long after its sender has
// ended. The API server compares one object per write, so one object serializes the hand-over: the
// Record, which names one version of one pod.
//
// Rules for writes, which the callers keep:
//
//   - A write that removes the marks has no condition.
//   - A write with the marks has the resource version of the pod as a condition: a version that has the
//     marks already (Keep), or the version in the record (Take).
//   - A record replaces the record from which it was decided (Claim), and no other.
//
// Why this suffices: a pod without the marks gets them only by a write on the version in a record, and a
// version never returns. A pod that was seen without the marks at a version after the one in its record can
// not get them any more, whatever is under way, until there is another record. So Decide asks for a new
// record only when the pod in the present one was seen so, or is gone. The old view of a cache is enough
// for that: if the record has changed since, it is not replaced.
package exclusive

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Record names the pod that may have the marks of a group.
type Record struct {
	// UID is that of the pod. It is empty if there is no record.
	UID types.UID
	// Version is the resource version of the pod on which the marks may be written. The version of one
	// pod only grows.
	Version string
}

// Pod is what is known about a pod of the group.
type Pod struct {
	// Name and UID identify the pod.
	Name string
	UID  types.UID
	// Version is the resource version that was read.
	Version string
	// Marked is whether this version has one of the marks.
	Marked bool
	// Claims is whether the pod's probe has the state of the policy.
	Claims bool
	// Since is when the state last changed, in whole seconds.
	Since time.Time
	// Term is the term in the message, or nil if there is none.
	Term *int64
}

// Group is what is known about a group.
type Group struct {
	// Record is the record of the group.
	Record Record
	// Pods are the pods of the group, and the pod in the record wherever it is, in any order.
	Pods []Pod
	// Gone is whether the API server answered that the pod in the record does not exist.
	Gone bool
	// Surveyed is whether the API server answered, after it was known that there is no record, that no
	// other pod of the group has the marks.
	Surveyed bool
}

// Step is what the winner may do.
type Step string

// The steps.
const (
	// Nobody means that no pod claims the marks. Pods keep what they have otherwise.
	Nobody Step = ""
	// Keep means that the winner has the marks, and keeps them.
	Keep Step = "Keep"
	// Take means that the winner may be written with the marks, on its version.
	Take Step = "Take"
	// Claim means that the winner's version must be recorded, and then is Take.
	Claim Step = "Claim"
	// Look means that the API server must be asked first: for the pod in the record, or if there is no
	// record, for all pods of the group.
	Look Step = "Look"
	// Wait means that another pod comes first: Blocker.
	Wait Step = "Wait"
)

// Decision is who has the marks of a group.
type Decision struct {
	// Winner is the pod with the best claim, or nil.
	Winner *Pod
	// Step is what the winner may do.
	Step Step
	// Blocker is the pod that the winner waits for. It is the winner itself if its version is older than
	// the one in the record.
	Blocker *Pod
	// Fence is whether the blocker has no marks, but a write with marks may be under way to it: any
	// change of the blocker stops that write, and must be made.
	Fence bool
}

// Loses reports whether the pod must not have the marks because another one wins.
func (d Decision) Loses(pod types.UID) bool { return d.Winner != nil && d.Winner.UID != pod }

// Decide decides who has the marks of the group.
func Decide(g Group) Decision {
	d := Decision{Winner: best(g)}
	if d.Winner == nil {
		return d
	}
	for i := range g.Pods {
		if pod := &g.Pods[i]; pod.Marked && pod.UID != d.Winner.UID {
			return d.wait(pod, false)
		}
	}
	switch {
	case g.Record.UID == d.Winner.UID:
		return d.resume(g.Record)
	case g.Record.UID == "":
		return d.after(g.Surveyed)
	case g.Gone:
		return d.after(true)
	}
	former := slices.IndexFunc(g.Pods, func(pod Pod) bool { return pod.UID == g.Record.UID })
	if former < 0 {
		return d.after(false)
	}
	// The former pod has no marks in the version that was read.
	order, known := compare(g.Pods[former].Version, g.Record.Version)
	if !known || order <= 0 {
		return d.wait(&g.Pods[former], known && order == 0)
	}
	return d.after(true)
}

// resume decides the step of a winner that is in the record.
func (d Decision) resume(record Record) Decision {
	order, known := compare(d.Winner.Version, record.Version)
	switch {
	case d.Winner.Marked:
		d.Step = Keep
	case !known || order < 0:
		return d.wait(d.Winner, false)
	case order == 0:
		d.Step = Take
	default:
		d.Step = Claim
	}
	return d
}

// after returns the decision about a winner that is not in the record: sure is whether no other pod has the
// marks or may still get them.
func (d Decision) after(sure bool) Decision {
	if d.Step = Look; sure {
		d.Step = Claim
	}
	return d
}

func (d Decision) wait(blocker *Pod, fence bool) Decision {
	d.Step, d.Blocker, d.Fence = Wait, blocker, fence
	return d
}

// compare compares two versions of one pod. known is false if they are not comparable.
func compare(a, b string) (order int, known bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// best returns the pod with the best claim: the highest term, then the latest change of the state, then the
// pod in the record, then the first name.
func best(g Group) *Pod {
	var winner *Pod
	for i := range g.Pods {
		if pod := &g.Pods[i]; pod.Claims && (winner == nil || g.Record.Compare(pod, winner) < 0) {
			winner = pod
		}
	}
	return winner
}

// Compare is negative if pod a has the better claim.
func (r Record) Compare(a, b *Pod) int {
	return cmp.Or(
		-compareTerms(a.Term, b.Term), -a.Since.Compare(b.Since),
		-compareBools(a.UID == r.UID, b.UID == r.UID), strings.Compare(a.Name, b.Name),
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
