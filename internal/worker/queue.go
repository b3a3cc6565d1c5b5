// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"container/heap"
	"time"
)

// queue orders probes by when they are due.
type queue struct{ heap entries }

// first returns the probe that is due first, or nil.
func (q *queue) first() *entry {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

// put gives a probe its place, whether it has one already or not.
func (q *queue) put(e *entry, due time.Time) {
	e.due = due
	if e.index >= 0 {
		heap.Fix(&q.heap, e.index)
		return
	}
	heap.Push(&q.heap, e)
}

// remove takes a probe out, if it is in.
func (q *queue) remove(e *entry) {
	if e.index >= 0 {
		heap.Remove(&q.heap, e.index)
	}
}

// entries is the heap behind a queue.
type entries []*entry

var _ heap.Interface = (*entries)(nil)

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *entries) Push(x any) {
	e := x.(*entry)
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = -1
	return e
}
