// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// Recent remembers the last write of each object until the cache has it, so that a reconcile in
// between does not repeat the write. K identifies an object, V is what was written. It is safe
// for concurrent use. The zero value is ready for use.
type Recent[K comparable, V any] struct {
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

// Wrote records that the value was written to the object with the UID, which then had the resource
// version.
func (r *Recent[K, V]) Wrote(key K, uid types.UID, resourceVersion string, value V) {
	r.writes.Set(key, write[V]{uid: uid, resourceVersion: resourceVersion, value: value})
}

// Unseen returns the last written value if the cached object, which has the UID and the resource
// version, is older than that write. Otherwise it forgets the write.
func (r *Recent[K, V]) Unseen(key K, uid types.UID, cached string) (value V, unseen bool) {
	r.writes.Update(key, func(last *write[V]) bool {
		if order, known := last.compare(uid, cached); known && order < 0 {
			value, unseen = last.value, true
		}
		return unseen
	})
	return value, unseen
}

// Seen forgets the write of the object if the cached object, which has the UID and the resource
// version, is not older. Unseen does so too, but later if the object is queued.
func (r *Recent[K, V]) Seen(key K, uid types.UID, cached string) {
	r.writes.Update(key, func(last *write[V]) bool {
		order, known := last.compare(uid, cached)
		return last.resourceVersion != "" && (!known || order < 0)
	})
}

// Forget forgets the last write of the object.
func (r *Recent[K, V]) Forget(key K) { r.writes.Forget(key) }
