// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// ExpectationStore holds the expectations E of each object of a kind: the writes that the cache does not show yet. It drops
// them when another object has the name. It is safe for concurrent use. The expectations of an object are not: only the
// reconciles of the object use them, one at a time. The zero value is empty.
type ExpectationStore[E any] struct {
	objects keyed.Store[types.NamespacedName, entry[E]]
}

type entry[E any] struct {
	uid   types.UID
	value *E
}

// Get returns the expectations of an object, at first the zero value.
func (s *ExpectationStore[E]) Get(object client.Object) (value *E) {
	s.objects.Update(client.ObjectKeyFromObject(object), func(current *entry[E]) bool {
		if current.value == nil || current.uid != object.GetUID() {
			*current = entry[E]{uid: object.GetUID(), value: new(E)}
		}
		value = current.value
		return true
	})
	return value
}

// Forget drops the expectations of an object.
func (s *ExpectationStore[E]) Forget(key types.NamespacedName) { s.objects.Forget(key) }
