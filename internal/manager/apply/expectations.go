// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// Expectations are the last writes of objects that the cache does not have yet, so that a reconcile in
// between does not repeat them. K identifies an object, V is the written value. Expectations are safe
// for concurrent use. The zero value is ready for use.
type Expectations[K comparable, V any] struct {
	writes keyed.Store[K, write[V]]
}

type write[V any] struct {
	uid             types.UID
	resourceVersion string
	value           V
}

// compare returns how the cached object compares to the write, and whether they can be compared.
func (w *write[V]) compare(uid types.UID, cached string) (order int, known bool) {
	if w.resourceVersion == "" || w.uid != uid {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(cached, w.resourceVersion)
	return order, err == nil
}

// Expect records a write: the object with the UID had the resource version after it.
func (e *Expectations[K, V]) Expect(key K, uid types.UID, resourceVersion string, value V) {
	e.writes.Set(key, write[V]{uid: uid, resourceVersion: resourceVersion, value: value})
}

// Pending returns the last written value if the cached object is older than the write. Otherwise it
// forgets the write. uid and cached are the UID and the resource version of the cached object.
func (e *Expectations[K, V]) Pending(key K, uid types.UID, cached string) (value V, pending bool) {
	e.writes.Update(key, func(last *write[V]) bool {
		if order, known := last.compare(uid, cached); known && order < 0 {
			value, pending = last.value, true
		}
		return pending
	})
	return value, pending
}

// Observe forgets the write if the cached object is not older than it. Pending does so too, but only
// when the object is reconciled.
func (e *Expectations[K, V]) Observe(key K, uid types.UID, cached string) {
	e.writes.Update(key, func(last *write[V]) bool {
		order, known := last.compare(uid, cached)
		return last.resourceVersion != "" && (!known || order < 0)
	})
}

// Forget forgets the last write of the object.
func (e *Expectations[K, V]) Forget(key K) { e.writes.Forget(key) }
