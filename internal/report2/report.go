// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report decides what an agent reports, and when. From the plan in force, the ledger
// of earlier reports and the current states, Decide computes which slices to write now.
package report

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
)

const (
	// MaxPods is the maximum number of planned pods in a slice.
	MaxPods = 8

	// MaxBytes is the budget of a slice in encoded bytes. States are always reported, so it
	// limits the messages, and a pod whose states alone exceed it has a slice of its own.
	MaxBytes = 48 << 10

	// EmptyDelay is how long a slice without planned pods is kept, in case that it is used
	// again.
	EmptyDelay = 10 * time.Minute
)

// Plan is the plan that is in force on a node.
type Plan struct {
	// Generation is the generation of the NodePodProbe.
	Generation int64
	// Pods are the pods in its spec.
	Pods []v1alpha1.PodProbe
}

// Probes returns the number of probes in the plan.
func (p Plan) Probes() int {
	n := 0
	for i := range p.Pods {
		n += len(p.Pods[i].Probes)
	}
	return n
}

// States are the current states of the probes on the node. A probe whose state is empty has
// had no result. A probe without an entry is not known yet and keeps its reported state.
type States map[probeid.Key]streak.State

// Slice is a stored slice: a ProbeReport.
type Slice struct {
	// Number is the number in its name (see NumberOf).
	Number int
	// Pods are its pods. They must not be modified.
	Pods []seamarkv1alpha1.PodReport
}

// Write is a slice to write: as a whole, or to delete.
type Write struct {
	// Number is the number in its name (see NameOf).
	Number int
	// Pods are all pods of the slice, which may be none. They must not be modified.
	Pods []seamarkv1alpha1.PodReport
	// Create reports whether the slice is not stored as far as the ledger knows.
	Create bool
	// Delete reports whether to delete the slice. A slice that does not exist is deleted.
	Delete bool
}

// Decision is what to write, and when.
type Decision struct {
	// Writes are the slices to write now, by number. Each number occurs once.
	Writes []Write
	// Ledger replaces the ledger before the writes are sent, even if there are none. It
	// records the places of the pods, and that the slices in Writes may have been written
	// although the response is lost. Until Wrote, Decide returns such slices again.
	Ledger Ledger
	// Next is when to decide again if nothing changes until then and this decision is
	// carried out. It is zero if there is no need to.
	Next time.Time
}

// Decide decides which slices to write now. It omits planned probes with an invalid name.
func Decide(now time.Time, plan Plan, ledger Ledger, states States) Decision {
	return Decision{Ledger: ledger}
}

// Restore returns the reported states of the planned probes. An agent starts from them.
func Restore(plan Plan, ledger Ledger) States { return States{} }
