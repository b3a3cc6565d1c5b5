// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue serves tenants in turn, so that one with many items does not delay the others.
package fairqueue

import "k8s.io/client-go/util/workqueue"

// Queue holds items in the order in which they are served: one of each tenant in turn, and those of
// one tenant in the order in which they were pushed. A new item waits for at most one item of each
// other tenant, and for the earlier items of its own. It is a workqueue.Queue, and like every one not
// safe for concurrent use by itself. Use New to create one.
type Queue[T comparable] struct {
	tenant func(T) string
	// turns are the tenants that have items, in the order of their turns.
	turns workqueue.Queue[string]
	items map[string]workqueue.Queue[T]
	total int
}

// New returns an empty queue of items whose tenant is that of the function.
func New[T comparable](tenant func(item T) string) *Queue[T] {
	return &Queue[T]{tenant: tenant, turns: workqueue.DefaultQueue[string](), items: make(map[string]workqueue.Queue[T])}
}

// Touch does nothing: an item that is pushed again keeps its place.
func (q *Queue[T]) Touch(T) {}

// Push adds the item. It must not be in the queue.
func (q *Queue[T]) Push(item T) {
	tenant := q.tenant(item)
	own := q.items[tenant]
	if own == nil {
		own = workqueue.DefaultQueue[T]()
		q.items[tenant] = own
		q.turns.Push(tenant)
	}
	own.Push(item)
	q.total++
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.total }

// Pop removes the next item and returns it. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	tenant := q.turns.Pop()
	own := q.items[tenant]
	item := own.Pop()
	q.total--
	if own.Len() > 0 {
		q.turns.Push(tenant)
	} else {
		delete(q.items, tenant)
	}
	return item
}
