// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collection has the objects of one resource. It is the store of a reflector.
type collection[T client.Object] struct {
	// mu is the lock of all collections of a watch.
	mu    *sync.Mutex
	items map[types.NamespacedName]T
	// trim returns an object with only the fields that rows depend on.
	trim func(T) T
	// keep is whether the object is kept.
	keep func(T) bool
	// touch records that the rows that depend on the object may have changed.
	touch func(any)
}

func newCollection[T client.Object](mu *sync.Mutex, trim func(T) T, touch func(any)) collection[T] {
	return collection[T]{mu: mu, items: map[types.NamespacedName]T{}, trim: trim, keep: func(T) bool { return true }, touch: touch}
}

// Add adds or replaces an object.
func (c *collection[T]) Add(object any) error {
	item, err := as[T](object)
	if err != nil || !c.keep(item) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(c.trim(item))
	return nil
}

// Update adds or replaces an object.
func (c *collection[T]) Update(object any) error { return c.Add(object) }

// Delete deletes an object.
func (c *collection[T]) Delete(object any) error {
	item, err := as[T](object)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(client.ObjectKeyFromObject(item))
	return nil
}

// Replace replaces all objects. They are trimmed already.
func (c *collection[T]) Replace(objects []any, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	for key := range c.items {
		if !listed[key] {
			c.remove(key)
		}
	}
	return nil
}

// Resync does nothing.
func (c *collection[T]) Resync() error { return nil }

func (c *collection[T]) put(item T) {
	key := client.ObjectKeyFromObject(item)
	old, found := c.items[key]
	if found {
		if old.GetUID() == item.GetUID() && old.GetResourceVersion() == item.GetResourceVersion() {
			return
		}
		c.touch(old)
	}
	c.items[key] = item
	c.touch(item)
}

func (c *collection[T]) remove(key types.NamespacedName) {
	if old, found := c.items[key]; found {
		delete(c.items, key)
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
