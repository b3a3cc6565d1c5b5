// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Recent remembers the last write of each object until the cache has it, so that a reconcile in
// between does not repeat the write. K identifies an object, V is what was written. It is safe
// for concurrent use. Use NewRecent to create one.
type Recent[K comparable, V any] struct {
	mu     sync.Mutex
	writes map[K]write[V]
}

type write[V any] struct {
	uid             types.UID
	resourceVersion string
	value           V
}

// NewRecent returns an empty Recent.
func NewRecent[K comparable, V any]() *Recent[K, V] {
	return &Recent[K, V]{writes: make(map[K]write[V])}
}

// Wrote records that the value was written to the object with the UID, which then had the resource
// version.
func (r *Recent[K, V]) Wrote(key K, uid types.UID, resourceVersion string, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[key] = write[V]{uid: uid, resourceVersion: resourceVersion, value: value}
}

// Unseen returns the last written value if the cached object, which has the UID and the resource
// version, is older than that write. Otherwise it forgets the write.
func (r *Recent[K, V]) Unseen(key K, uid types.UID, cached string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.writes[key]
	if found && last.uid == uid {
		if order, err := resourceversion.CompareResourceVersion(cached, last.resourceVersion); err == nil && order < 0 {
			return last.value, true
		}
	}
	r.remove(key)
	var none V
	return none, false
}

// Seen forgets the write of the object if the cached object, which has the UID and the resource
// version, is not older. Unseen does so too, but later if the object is queued.
func (r *Recent[K, V]) Seen(key K, uid types.UID, cached string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.writes[key]
	if !found || last.uid != uid {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(cached, last.resourceVersion); err == nil && order >= 0 {
		r.remove(key)
	}
}

// Forget forgets the last write of the object.
func (r *Recent[K, V]) Forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(key)
}

// remove requires the lock. It replaces an empty map, because maps keep their memory.
func (r *Recent[K, V]) remove(key K) {
	if delete(r.writes, key); len(r.writes) == 0 {
		r.writes = make(map[K]write[V])
	}
}
