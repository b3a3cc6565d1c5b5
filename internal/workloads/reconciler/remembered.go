// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memory remembers an R about each object of a kind, until another object has its name. It is safe for concurrent use. An R
// belongs to the reconciles of its object, which follow each other.
type Memory[R any] struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]remembrance[R]
}

type remembrance[R any] struct {
	uid  types.UID
	what *R
}

// NewMemory returns an empty Memory.
func NewMemory[R any]() *Memory[R] {
	return &Memory[R]{objects: map[types.NamespacedName]remembrance[R]{}}
}

// Of returns what is remembered about an object, at first the zero value.
func (m *Memory[R]) Of(object client.Object) *R {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(object)
	found := m.objects[key]
	if found.what == nil || found.uid != object.GetUID() {
		found = remembrance[R]{uid: object.GetUID(), what: new(R)}
		m.objects[key] = found
	}
	return found.what
}

// Forget forgets an object.
func (m *Memory[R]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
}
