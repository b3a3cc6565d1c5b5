// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue serves tenants in turn, so that one with many items does not delay the others.
package fairqueue

import (
	"cmp"
	"slices"

	"k8s.io/client-go/util/workqueue"
)

// Queue holds items in the order in which they are served: one of each tenant in turn, and those of
// one tenant in the order of their priorities, and of the pushes of those with the same priority. A new item waits for
// at most one item of each other tenant, and for the earlier items of its own. It is a workqueue.Queue, and like every
// one not safe for concurrent use by itself. Use New to create one.
type Queue[T comparable] struct {
	tenant   func(T) string
	priority func(T) int
	popped   func(T)
	// turns are the tenants that have items, in the order of their turns.
	turns workqueue.Queue[string]
	items map[string]*own[T]
	total int
}

// own are the items of a tenant.
type own[T comparable] struct {
	// levels have the items of each priority, the highest first. An item whose priority has been raised is in two of them,
	// and valid in the one of its priority.
	levels   []*level[T]
	priority map[T]int
}

type level[T comparable] struct {
	priority int
	items    workqueue.Queue[T]
}

// New returns an empty queue. All items have the same priority.
func New[T comparable](tenant func(item T) string) *Queue[T] {
	return NewWithPriorities(tenant, func(T) int { return 0 }, func(T) {})
}

// NewWithPriorities returns an empty queue. It asks for the priority of an item when it is pushed or touched, and calls
// popped when it leaves the queue.
func NewWithPriorities[T comparable](tenant func(item T) string, priority func(item T) int, popped func(item T)) *Queue[T] {
	return &Queue[T]{tenant: tenant, priority: priority, popped: popped, turns: workqueue.DefaultQueue[string](), items: map[string]*own[T]{}}
}

// Touch raises an item whose priority has become higher.
func (q *Queue[T]) Touch(item T) {
	all := q.items[q.tenant(item)]
	if all == nil {
		return
	}
	if before, queued := all.priority[item]; queued && q.priority(item) > before {
		all.push(item, q.priority(item))
	}
}

// Push adds an item.
func (q *Queue[T]) Push(item T) {
	tenant := q.tenant(item)
	all := q.items[tenant]
	if all == nil {
		all = &own[T]{priority: map[T]int{}}
		q.items[tenant] = all
		q.turns.Push(tenant)
	}
	all.push(item, q.priority(item))
	q.total++
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.total }

// Pop removes the next item.
func (q *Queue[T]) Pop() T {
	tenant := q.turns.Pop()
	all := q.items[tenant]
	item := all.pop()
	q.total--
	if len(all.priority) > 0 {
		q.turns.Push(tenant)
	} else {
		delete(q.items, tenant)
	}
	q.popped(item)
	return item
}

func (o *own[T]) push(item T, priority int) {
	o.priority[item] = priority
	at, found := slices.BinarySearchFunc(o.levels, priority, func(l *level[T], wanted int) int { return cmp.Compare(wanted, l.priority) })
	if !found {
		o.levels = slices.Insert(o.levels, at, &level[T]{priority: priority, items: workqueue.DefaultQueue[T]()})
	}
	o.levels[at].items.Push(item)
}

// pop removes the first valid item, of which there is one.
func (o *own[T]) pop() T {
	for {
		first := o.levels[0]
		if first.items.Len() == 0 {
			o.levels = o.levels[1:]
			continue
		}
		item := first.items.Pop()
		if priority, queued := o.priority[item]; queued && priority == first.priority {
			delete(o.priority, item)
			return item
		}
	}
}
