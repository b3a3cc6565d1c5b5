// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// setStates are the states of sets. They are safe for concurrent use.
type setStates struct {
	sets keyed.Store[string, *setState]
}

// setState is what is kept between the reconciles of a set.
type setState struct {
	uid types.UID
	// force is the last acceptance that the status had.
	force *v1alpha1.SidecarSetInForce
	// pods is the highest resource version of a pod that was written, empty if the cache has it.
	pods string
	// reported is when the status was written.
	reported time.Time
	// events are those about updates that have not been recorded, and announced is when the last ones were.
	events    []planning.Event
	announced time.Time
	// refused are the pods that refused an update, and until when they are left alone.
	refused map[types.UID]refusal
	// uninjected is the number of selected pods without the set, counted at the time for the generation, or
	// negative if it must be counted.
	uninjected int32
	counted    time.Time
	generation int64
	// selector is that of the generation.
	selector labels.Selector
}

// refusal is how long a pod is left alone.
type refusal struct {
	until time.Time
	pause time.Duration
}

// update calls do with the state of the set.
func (s *setStates) update(set *v1alpha1.SidecarSet, do func(s *setState)) {
	s.sets.Update(set.Name, func(current **setState) bool {
		if *current == nil || (*current).uid != set.UID {
			*current = &setState{uid: set.UID, uninjected: -1}
		}
		do(*current)
		return true
	})
}

// withAcceptance returns the set with its last acceptance, also while the status does not have it: OpenKruise's client
// drops fields that it does not know when it writes the status.
func (s *setStates) withAcceptance(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSet {
	paused, unknown := entries.Paused(set), entries.IsUnknown(set)
	if !unknown && set.Spec.InjectionStrategy.Paused == paused {
		return set
	}
	kept := *set
	kept.Spec.InjectionStrategy.Paused = paused
	if unknown {
		s.update(set, func(s *setState) { kept.Status.InForce = s.force })
	}
	return &kept
}

// caughtUp reports whether the cache has what was written.
func (s *setState) caughtUp(pods reconciler.Store) bool {
	if reconciler.Behind(pods, s.pods) {
		return false
	}
	s.pods = ""
	return true
}
