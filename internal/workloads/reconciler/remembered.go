// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// Memory remembers an R about each object of a kind, until another object has its name. It is safe for concurrent use. An R
// belongs to the reconciles of its object, which follow each other. The zero value is empty.
type Memory[R any] struct {
	objects keyed.Store[types.NamespacedName, remembrance[R]]
}

type remembrance[R any] struct {
	uid  types.UID
	what *R
}

// Of returns what is remembered about an object, at first the zero value.
func (m *Memory[R]) Of(object client.Object) (what *R) {
	m.objects.Update(client.ObjectKeyFromObject(object), func(found *remembrance[R]) bool {
		if found.what == nil || found.uid != object.GetUID() {
			*found = remembrance[R]{uid: object.GetUID(), what: new(R)}
		}
		what = found.what
		return true
	})
	return what
}

// Forget forgets an object.
func (m *Memory[R]) Forget(key types.NamespacedName) { m.objects.Forget(key) }
