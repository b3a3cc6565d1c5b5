// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

const own = "seamark"

// of returns the RoleBinding of the manager, or one of an administrator, with other subjects if any are given.
func of(change ...func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
	b := binding("ns", own)
	for _, each := range change {
		each(b)
	}
	return b
}

func emptied(b *rbacv1.RoleBinding) { b.Subjects = nil }
func byHand(b *rbacv1.RoleBinding)  { b.Name = "mine"; delete(b.Labels, managedBy) }

func TestDecide(t *testing.T) {
	t.Parallel()
	other := func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = "other" }
	for name, test := range map[string]struct {
		in   state
		want action
		wait time.Duration
	}{
		"no sets":                             {state{certain: true}, nothing, 0},
		"first set":                           {state{needed: true}, create, 0},
		"first set, other kinds unknown":      {state{needed: true, certain: false}, create, 0},
		"has it":                              {state{needed: true, certain: true, bindings: []*rbacv1.RoleBinding{of()}}, nothing, 0},
		"by an administrator":                 {state{needed: true, certain: true, bindings: []*rbacv1.RoleBinding{of(byHand)}}, nothing, 0},
		"of an administrator without account": {state{needed: true, bindings: []*rbacv1.RoleBinding{of(byHand, emptied)}}, create, 0},
		"not managed with our name":           {state{certain: true, unneeded: time.Hour, bindings: []*rbacv1.RoleBinding{of(func(b *rbacv1.RoleBinding) { delete(b.Labels, managedBy) })}}, nothing, 0},
		"both":                                {state{needed: true, certain: true, unneeded: time.Hour, bindings: []*rbacv1.RoleBinding{of(), of(byHand)}}, empty, 0},
		"other subject":                       {state{needed: true, bindings: []*rbacv1.RoleBinding{of(other)}}, fill, 0},
		"set again after it lost subjects":    {state{needed: true, bindings: []*rbacv1.RoleBinding{of(emptied)}}, fill, 0},
		"last set gone":                       {state{certain: true, unneeded: time.Second, bindings: []*rbacv1.RoleBinding{of()}}, nothing, idle - time.Second},
		"last set gone for long":              {state{certain: true, unneeded: idle, bindings: []*rbacv1.RoleBinding{of()}}, empty, 0},
		"sets of a kind unknown":              {state{unneeded: time.Hour, bindings: []*rbacv1.RoleBinding{of()}}, nothing, idle},
		"lost subjects":                       {state{certain: true, unneeded: idle, emptied: time.Second, bindings: []*rbacv1.RoleBinding{of(emptied)}}, nothing, drained - time.Second},
		"lost subjects, old requests ended":   {state{certain: true, unneeded: drained, emptied: drained, bindings: []*rbacv1.RoleBinding{of(emptied)}}, remove, 0},
		"lost subjects, sets unknown since":   {state{unneeded: drained, emptied: drained, bindings: []*rbacv1.RoleBinding{of(emptied)}}, nothing, idle},
		"never deleted while it has subjects": {state{certain: true, unneeded: drained, emptied: drained, bindings: []*rbacv1.RoleBinding{of()}}, empty, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.in.own, test.in.idle, test.in.drained = own, idle, drained
			if got, _, wait := decide(test.in); got != test.want || wait != test.wait {
				t.Errorf("%q after %s, want %q after %s", got, wait, test.want, test.wait)
			}
		})
	}
}
