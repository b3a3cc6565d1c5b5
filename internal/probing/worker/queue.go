// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"container/heap"
	"time"
)

// queue orders probes by the time that they are due.
type queue struct{ heap entries }

// first returns the probe that is due next, or nil.
func (q *queue) first() *entry {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

// put adds a probe, or moves it if it is in the queue.
func (q *queue) put(e *entry, due time.Time) {
	e.due = due
	if e.index >= 0 {
		heap.Fix(&q.heap, e.index)
		return
	}
	heap.Push(&q.heap, e)
}

// remove removes a probe if it is in the queue.
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
