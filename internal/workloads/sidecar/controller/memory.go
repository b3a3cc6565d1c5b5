// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
)

// memory is what the process remembers about sets. It is safe for concurrent use.
type memory struct {
	sets keyed.Store[string, *remembered]
}

// remembered is what is remembered about a set.
type remembered struct {
	uid types.UID
	// force is the last acceptance that the status had.
	force *v1alpha1.SidecarSetInForce
	// pods is the highest resource version of a pod that was written, empty if the cache has it.
	pods string
	// reported is when the status was written.
	reported time.Time
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

// of calls do with what is remembered about the set.
func (m *memory) of(set *v1alpha1.SidecarSet, do func(r *remembered)) {
	m.sets.Update(set.Name, func(known **remembered) bool {
		if *known == nil || (*known).uid != set.UID {
			*known = &remembered{uid: set.UID, uninjected: -1}
		}
		do(*known)
		return true
	})
}

// known returns the set with its last acceptance, also while the status does not have it: OpenKruise's client
// drops fields that it does not know when it writes the status.
func (m *memory) known(set *v1alpha1.SidecarSet) *v1alpha1.SidecarSet {
	paused, unknown := entries.Paused(set), entries.IsUnknown(set)
	if !unknown && set.Spec.InjectionStrategy.Paused == paused {
		return set
	}
	kept := *set
	kept.Spec.InjectionStrategy.Paused = paused
	if unknown {
		m.of(set, func(r *remembered) { kept.Status.InForce = r.force })
	}
	return &kept
}

// caughtUp reports whether the cache has what was written.
func (r *remembered) caughtUp(pods reconciler.Store) bool {
	if reconciler.Behind(pods, r.pods) {
		return false
	}
	r.pods = ""
	return true
}
