// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Collection has the objects of one resource. It is the store of a reflector.
type Collection[T client.Object] struct {
	// Items are the objects. The lock guards them.
	Items map[types.NamespacedName]T
	// lock is that of all collections of a watch.
	lock sync.Locker
	trim func(T) T
	keep func(T) bool
	// touch is called with the lock for each object that was added, changed or deleted.
	touch func(any)
}

// NewCollection returns an empty collection. Objects for which keep returns false are left out. Trim
// returns an object with only the fields that matter. Touch is called with the lock for each object
// that was added, changed or deleted.
func NewCollection[T client.Object](lock sync.Locker, keep func(T) bool, trim func(T) T, touch func(any)) *Collection[T] {
	return &Collection[T]{Items: map[types.NamespacedName]T{}, lock: lock, keep: keep, trim: trim, touch: touch}
}

// All keeps every object of a Collection.
func All[T client.Object](T) bool { return true }

// Add adds or replaces an object.
func (c *Collection[T]) Add(object any) error {
	item, err := as[T](object)
	if err != nil || !c.keep(item) {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.put(c.trim(item))
	return nil
}

// Update adds or replaces an object.
func (c *Collection[T]) Update(object any) error { return c.Add(object) }

// Delete deletes an object.
func (c *Collection[T]) Delete(object any) error {
	item, err := as[T](object)
	if err != nil {
		return err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.remove(client.ObjectKeyFromObject(item))
	return nil
}

// Replace replaces all objects. They are trimmed already.
func (c *Collection[T]) Replace(objects []any, _ string) error { return c.replace("", objects) }

// replace replaces the objects of the namespace, or all if it is empty.
func (c *Collection[T]) replace(namespace string, objects []any) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	listed := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		item, err := as[T](object)
		if err != nil {
			return err
		}
		if c.keep(item) {
			listed[client.ObjectKeyFromObject(item)] = true
			c.put(item)
		}
	}
	for key := range c.Items {
		if !listed[key] && (namespace == "" || key.Namespace == namespace) {
			c.remove(key)
		}
	}
	return nil
}

// part is the part of a collection that one resource fills: the objects of a namespace, or all if it is empty.
type part[T client.Object] struct {
	*Collection[T]
	namespace string
}

// Replace replaces the objects of the namespace.
func (p part[T]) Replace(objects []any, _ string) error { return p.replace(p.namespace, objects) }

// Resync does nothing.
func (c *Collection[T]) Resync() error { return nil }

func (c *Collection[T]) put(item T) {
	key := client.ObjectKeyFromObject(item)
	old, found := c.Items[key]
	if found {
		if old.GetUID() == item.GetUID() && old.GetResourceVersion() == item.GetResourceVersion() {
			return
		}
		c.touch(old)
	}
	c.Items[key] = item
	c.touch(item)
}

func (c *Collection[T]) remove(key types.NamespacedName) {
	if old, found := c.Items[key]; found {
		delete(c.Items, key)
		c.touch(old)
	}
}

func as[T client.Object](object any) (T, error) {
	item, isExpected := object.(T)
	if !isExpected {
		return item, fmt.Errorf("unexpected object of type %T in a watch of %T", object, item)
	}
	return item, nil
}
