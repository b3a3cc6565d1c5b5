// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	// idle is how long a namespace must have no sets before its RoleBinding loses its subjects.
	idle = time.Minute
	// drained is how long it must have had no subjects before it is deleted: longer than any request to the API server, which
	// takes a minute by default, and than the time in which other API servers learn of the change.
	drained = 10 * time.Minute
)

// action is what the manager does with the RoleBinding of a namespace.
type action string

const (
	nothing action = ""
	create  action = "create"
	// fill restores the subjects, empty removes them.
	fill, empty action = "fill", "empty"
	remove      action = "delete"
)

// state is what is known about a namespace.
type state struct {
	// own is the namespace of seamark-workloads.
	own string
	// idle and drained are the times that unneeded and emptied must last.
	idle, drained time.Duration
	// needed is whether the namespace has sets. That it has none is certain if certain is set: all caches are synced.
	needed, certain bool
	// unneeded is how long the namespace has had none, emptied how long its RoleBinding has had no subjects, as this process
	// has seen it. No clock of another process matters.
	unneeded, emptied time.Duration
	// bindings are the RoleBindings of the namespace with the label.
	bindings []*rbacv1.RoleBinding
}

// decide returns what to do with the RoleBinding that the manager created in the namespace, which may be nil, and when to
// decide again, zero if an event will tell.
func decide(s state) (next action, mine *rbacv1.RoleBinding, wait time.Duration) {
	byHand := false
	for _, binding := range s.bindings {
		switch {
		case binding.Name == Role && binding.Labels[managedBy] == manager:
			mine = binding
		default:
			byHand = byHand || Gives(binding, s.own)
		}
	}
	needed := s.needed && !byHand
	switch {
	case mine == nil && needed:
		return create, nil, 0
	case mine == nil:
		return nothing, nil, 0
	case needed && !slices.Equal(mine.Subjects, []rbacv1.Subject{subject(s.own)}):
		return fill, mine, 0
	case needed:
		return nothing, mine, 0
	case !s.certain && !byHand:
		return nothing, mine, s.idle // No event tells that the caches are synced.
	case s.unneeded < s.idle:
		return nothing, mine, s.idle - s.unneeded
	case len(mine.Subjects) > 0:
		return empty, mine, 0
	case s.emptied < s.drained:
		return nothing, mine, s.drained - s.emptied
	default:
		return remove, mine, 0
	}
}
