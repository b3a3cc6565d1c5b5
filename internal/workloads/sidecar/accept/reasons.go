// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"slices"

	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// Reason is the reason of a condition of a SidecarSet. The conditions Accepted, Injecting and Upgradable have no others.
type Reason string

// The reasons of the condition Accepted.
const (
	// NameConflict means that an accepted set has the name of a container, or another volume or annotation
	// with the same name, and can select the same pods.
	NameConflict Reason = "NameConflict"
	// MetadataNotAllowed means that the set sets an annotation that is not allowed.
	MetadataNotAllowed Reason = "MetadataNotAllowed"
	// InvalidJSON means that an annotation to merge is no JSON object.
	InvalidJSON Reason = "InvalidJSON"
	// InvalidContainer means that no pod can have a container.
	InvalidContainer Reason = "InvalidContainer"
	// RevisionNotFound means that the set names a revision that it does not have.
	RevisionNotFound Reason = "RevisionNotFound"
	// InvalidSelector means that the API server cannot select pods or namespaces as the set does.
	InvalidSelector Reason = "InvalidSelector"
	// NotChecked means that the set is accepted, and that it is not known whether pods can have its containers.
	NotChecked Reason = "NotChecked"
	// Accepted means that the set is accepted, and that pods can have its containers.
	Accepted Reason = "Accepted"
)

// The reasons of the condition Injecting.
const (
	// Paused means that a user has paused the injection.
	Paused Reason = entries.ReasonPaused
	// NeverAccepted means that no generation of the set has been accepted.
	NeverAccepted Reason = "NeverAccepted"
	// TooManySets means that the webhook configurations have no room for the set.
	TooManySets Reason = "TooManySets"
	// InjectorUnavailable means that no injector has published its certificate authority.
	InjectorUnavailable Reason = "InjectorUnavailable"
	// NotWritten means that the webhook entry of the set cannot be written.
	NotWritten Reason = "NotWritten"
	// Entered means that the webhook entry of the set exists.
	Entered Reason = "Entered"
)

// The reasons of the condition Upgradable.
const (
	// InPlace means that all pods can get the latest revision in place.
	InPlace Reason = "InPlace"
	// MustBeRecreated means that pods must be recreated to get it.
	MustBeRecreated Reason = "MustBeRecreated"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return append([]Reason{
		NameConflict, MetadataNotAllowed, InvalidJSON, InvalidContainer, RevisionNotFound, InvalidSelector, NotChecked,
		TooManySets, InjectorUnavailable, NotWritten, MustBeRecreated,
	}, intended()...)
}

// Intended reports whether nothing is wrong with a set because of a condition with the reason, or another condition has the problem.
func Intended(reason string) bool { return slices.Contains(intended(), Reason(reason)) }

func intended() []Reason { return []Reason{Accepted, Paused, NeverAccepted, Entered, InPlace} }
