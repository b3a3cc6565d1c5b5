// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how far the rollout of a set is: from the set alone, as clients that wait for it read it, and
// from its pods, which show what the rollout waits for. `seamark rollout`, `seamark explain` and the conditions Ready,
// Reconciling and Stalled of a set use it.
package rollout

import (
	"fmt"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Phase is where a rollout is.
type Phase string

const (
	// NotObserved means that the controller has not handled the last change yet. The numbers are those of an earlier one.
	NotObserved Phase = "NotObserved"
	// Progressing means that pods must be created, updated or deleted, or become available.
	Progressing Phase = "Progressing"
	// Paused means that pods must be updated, and a user has paused the update.
	Paused Phase = "Paused"
	// Complete means that all pods that the strategy updates are updated, and all pods are available. Others may keep an old
	// revision: those of a partition, or those that are updated when they are deleted.
	Complete Phase = "Complete"
	// Stalled means that progressDeadlineSeconds have passed. The controller goes on, and the set can still become complete.
	Stalled Phase = "Stalled"
)

// State is where a rollout is, and why.
type State struct {
	Phase Phase
	// Reason is why the phase is what it is, one of Reasons.
	Reason Reason
	// Message is a sentence without a period for users. It has numbers of pods, and no names.
	Message string
}

// Reason is a CamelCase word: why the phase of a rollout is what it is.
type Reason string

const (
	notObserved Reason = "NotObserved"
	// creating, updating and deleting mean that pods are to be created, updated or deleted.
	creating Reason = "Creating"
	updating Reason = "Updating"
	deleting Reason = "Deleting"
	// notAvailable means that pods must become available.
	notAvailable Reason = "NotAvailable"
	paused       Reason = "Paused"
	complete     Reason = "Complete"
	// exceeded means that progressDeadlineSeconds have passed.
	exceeded Reason = "ProgressDeadlineExceeded"
	// guarded means that guards protect pods.
	guarded Reason = "Guarded"
	// refused means that the API server refuses writes, or that they cannot be planned.
	refused Reason = "WritesRefused"
	// unplanned means that the next step cannot be planned.
	unplanned Reason = planning.PlanFailed
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{notObserved, creating, updating, deleting, notAvailable, paused, complete, exceeded, guarded, refused, unplanned}
}

// Unplanned is the state of a set whose next step cannot be planned. The counts of its status may be those of an earlier
// generation, in which it was complete.
func Unplanned(err error) State { return State{Progressing, unplanned, err.Error()} }

// Stored returns where the rollout is by the condition Ready, which is False, of a set whose counts are those of a complete rollout:
// outdated pods are missing in them, see Decide. It returns false for a reason that contradicts such counts, and for one that is
// unknown: another program has changed the counts without the condition.
func Stored(reason, message string) (State, bool) {
	switch reason := Reason(reason); reason {
	case paused:
		return State{Paused, reason, message}, true
	case exceeded:
		return State{Stalled, reason, message}, true
	case updating, guarded, refused, unplanned:
		return State{Progressing, reason, message}, true
	default:
		return State{}, false
	}
}

// Decide returns where the rollout is, for the controller, which knows which pods are outdated: see planning.Output. A status does
// not have their number, so clients use setview.View.State.
func Decide(p *planning.Progress, outdated int32) State {
	if message := Unobserved(p.Generation, p.Observed); message != "" {
		return State{NotObserved, notObserved, message}
	}
	reason, message := missing(p, outdated)
	switch {
	case reason == "":
		return State{Complete, complete, completed(p)}
	case p.Exceeded != "":
		return State{Stalled, exceeded, p.Exceeded}
	case reason == updating && p.Paused:
		return State{Paused, paused, "the update is paused: " + message}
	case p.Guarded != "" && (reason == updating || reason == deleting):
		return State{Progressing, guarded, message + ": " + p.Guarded}
	case p.Failing != "":
		return State{Progressing, refused, message + ": " + p.Failing}
	}
	return State{Progressing, reason, message}
}

// Unobserved says that the controller of an object of any kind has not handled its last change. It is empty if it has. A new object
// has no observed generation, or -1.
func Unobserved(generation, observed int64) string {
	switch {
	case observed >= generation:
		return ""
	case observed <= 0:
		return fmt.Sprintf("generation %d is not processed yet", generation)
	}
	return fmt.Sprintf("generation %d is not processed yet (observed %d)", generation, observed)
}

// missing returns what is missing before the rollout is complete, first what the next step needs. The reason is empty if
// nothing is.
func missing(p *planning.Progress, outdated int32) (reason Reason, message string) {
	switch {
	case p.Replicas < p.Desired:
		return creating, fmt.Sprintf("%d of %d pods exist", p.Replicas, p.Desired)
	case p.Updated < p.Target:
		return updating, fmt.Sprintf("%d of %d pods are updated", p.Updated, p.Target)
	case outdated > 0:
		return updating, text.Count(outdated, "pod") + " to be updated"
	case p.Replicas > p.Desired:
		return deleting, text.Count(p.Replicas-p.Desired, "pod") + " to be deleted"
	case p.UpdatedAvailable < p.Target:
		return notAvailable, fmt.Sprintf("%d of %d updated pods are available", p.UpdatedAvailable, p.Target)
	case p.Available < p.Desired:
		return notAvailable, fmt.Sprintf("%d of %d pods are available", p.Available, p.Desired)
	}
	return "", ""
}

// completed describes a rollout that is complete.
func completed(p *planning.Progress) string {
	old := max(p.Desired-p.Updated, 0)
	switch {
	case old > 0 && p.OnDelete:
		return fmt.Sprintf("%d of %d pods are available; to be updated on deletion: %d", p.Available, p.Desired, old)
	case old > 0:
		return fmt.Sprintf("%d of %d pods are updated and available; kept at an earlier revision: %d", p.Updated, p.Desired, old)
	}
	return fmt.Sprintf("%d of %d pods are updated and available", p.Updated, p.Desired)
}
