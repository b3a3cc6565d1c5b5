// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// InStatus is the number of an entry that is not in a slice with a valid name: of one in
// NodePodProbe.status.
const InStatus = math.MaxInt

// Entry is what one object reports about a pod.
type Entry struct {
	// Number is the number of the slice (see NumberOf), or InStatus.
	Number int
	// States are the reported states. They must not be modified.
	States []v1alpha1.ContainerProbeState
}

// Precedes reports whether the entry takes effect and the other entry of the same pod does not: it
// has the newer transition, or else the newer result, or else the lower number. A pod has two
// entries if an agent stopped between two writes, and while the status is kept up to date. Slices
// are written before the status. Of entries with equal times and numbers, none precedes.
//
// Agents and managers must not differ in this: a mark would depend on who reads the report.
func (e Entry) Precedes(other Entry) bool {
	transition, result := newest(e.States)
	otherTransition, otherResult := newest(other.States)
	return cmp.Or(
		transition.Compare(otherTransition), result.Compare(otherResult), cmp.Compare(other.Number, e.Number),
	) > 0
}

// newest returns the times of the newest transition and of the newest result.
func newest(entries []v1alpha1.ContainerProbeState) (transition, result time.Time) {
	for i := range entries {
		if t := entries[i].LastTransitionTime.Time; t.After(transition) {
			transition = t
		}
		if t := entries[i].LastProbeTime.Time; t.After(result) {
			result = t
		}
	}
	return transition, result
}

// NameOf returns the name of a node's slice.
func NameOf(node string, number int) string { return node + "." + strconv.Itoa(number) }

// NumberOf returns the number of a node's slice. It returns false if NameOf does not return
// the name for any number, which includes numbers with leading zeros.
func NumberOf(node, name string) (int, bool) {
	suffix, own := strings.CutPrefix(name, node)
	digits, dot := strings.CutPrefix(suffix, ".")
	number, err := strconv.ParseUint(digits, 10, 31)
	if !own || !dot || err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return int(number), true
}
