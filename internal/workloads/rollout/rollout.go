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
	// Reason is a CamelCase word: why the phase is what it is.
	Reason string
	// Message is a sentence without a period for users. It has numbers of pods, and no names.
	Message string
}

// Stored returns where the rollout is by the condition Ready of the set, which is False.
func Stored(reason, message string) State {
	switch reason {
	case pausedReason:
		return State{Paused, reason, message}
	case exceededReason:
		return State{Stalled, reason, message}
	}
	return State{Progressing, reason, message}
}

// Decide returns where the rollout is.
func Decide(p *planning.Progress) State {
	if p.Observed < p.Generation {
		return State{NotObserved, "NotObserved", notObserved(p)}
	}
	reason, message := missing(p)
	switch {
	case reason == "":
		return State{Complete, "Complete", complete(p)}
	case p.Exceeded != "":
		return State{Stalled, exceededReason, p.Exceeded}
	case reason == updatingReason && p.Paused:
		return State{Paused, pausedReason, "the update is paused: " + message}
	case p.Guarded != "" && (reason == updatingReason || reason == "Deleting"):
		return State{Progressing, "Guarded", message + ": " + p.Guarded}
	case p.Failing != "":
		return State{Progressing, "WritesRefused", message + ": " + p.Failing}
	}
	return State{Progressing, reason, message}
}

// notObserved describes a change that the controller has not handled. A new set has no observed generation, or -1.
func notObserved(p *planning.Progress) string {
	if p.Observed <= 0 {
		return fmt.Sprintf("generation %d is not processed yet", p.Generation)
	}
	return fmt.Sprintf("generation %d is not processed yet (observed %d)", p.Generation, p.Observed)
}

// updatingReason is the reason while pods must be updated, pausedReason while the update of them is paused, and exceededReason when
// progressDeadlineSeconds have passed.
const (
	updatingReason = "Updating"
	pausedReason   = "Paused"
	exceededReason = "ProgressDeadlineExceeded"
)

// missing returns what is missing before the rollout is complete, first what the next step needs. The reason is empty if
// nothing is.
func missing(p *planning.Progress) (reason, message string) {
	switch {
	case p.Replicas < p.Desired:
		return "Creating", fmt.Sprintf("%d of %d pods exist", p.Replicas, p.Desired)
	case p.Updated < p.Target:
		return updatingReason, fmt.Sprintf("%d of %d pods are updated", p.Updated, p.Target)
	case p.Outdated > 0:
		return updatingReason, text.Count(p.Outdated, "pod") + " to be updated"
	case p.Replicas > p.Desired:
		return "Deleting", text.Count(p.Replicas-p.Desired, "pod") + " to be deleted"
	case p.UpdatedAvailable < p.Target:
		return "NotAvailable", fmt.Sprintf("%d of %d updated pods are available", p.UpdatedAvailable, p.Target)
	case p.Available < p.Desired:
		return "NotAvailable", fmt.Sprintf("%d of %d pods are available", p.Available, p.Desired)
	}
	return "", ""
}

// complete describes a rollout that is complete.
func complete(p *planning.Progress) string {
	old := max(p.Desired-p.Updated, 0)
	switch {
	case old > 0 && p.OnDelete:
		return fmt.Sprintf("%d of %d pods are available; to be updated on deletion: %d", p.Available, p.Desired, old)
	case old > 0:
		return fmt.Sprintf("%d of %d pods are updated and available; kept at an earlier revision: %d", p.Updated, p.Desired, old)
	}
	return fmt.Sprintf("%d of %d pods are updated and available", p.Updated, p.Desired)
}
