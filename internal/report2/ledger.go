// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
)

// Ledger records what has been reported, and where it is stored. It is immutable: its methods
// return a new ledger.
type Ledger struct{}

// Read returns the ledger of an agent that starts with the stored slices. If legacy is not
// nil, the states and errors in NodePodProbe.status are in force: the slices only provide the
// places of the pods, and everything in them that differs is written. The states that are in
// force need no event.
func Read(slices []Slice, legacy []v1alpha1.PodProbeStatus) Ledger { return Ledger{} }

// Adopt returns the ledger after the slices have been listed again, because another client has
// changed or removed some. Call it while no write is in progress. Decide compares with these
// slices and repairs them: what the agent last read or wrote stays in force, and it does not
// change which states need an event, or when messages and errors may be reported.
func (l Ledger) Adopt(slices []Slice) Ledger { return l }

// Wrote returns the ledger after a write of a slice. The other slices are not affected, so
// slices can be written in parallel and some may fail.
func (l Ledger) Wrote(now time.Time, w Write) Ledger { return l }

// Events returns the events of a slice that has been written, in the order of the plan. Call
// it before Wrote. Unknown causes no event, and neither does a state that is reported again.
func (l Ledger) Events(plan Plan, w Write) []Event { return nil }

// MessageDue returns when a changed message of a probe may be reported while the state, which
// last changed at transition, stays the same.
func (l Ledger) MessageDue(key probeid.Key, transition time.Time) time.Time { return time.Time{} }

// Copy returns the reported states and errors of the planned pods, in the order of the plan,
// for NodePodProbe.status. It has at most MaxCopyBytes.
func (l Ledger) Copy(plan Plan) []v1alpha1.PodProbeStatus { return nil }

// Errors returns how many planned probes have a reported error with the reason.
func (l Ledger) Errors(plan Plan, reason v1alpha1.ProbeErrorReason) int { return 0 }

// Slices returns the number of stored slices.
func (l Ledger) Slices() int { return 0 }

// Reported reports whether a pod has an entry in a slice.
func (l Ledger) Reported(uid types.UID) bool { return false }
