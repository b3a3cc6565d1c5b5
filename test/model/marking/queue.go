// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// request is an entry of a queue.
type request = reconcile.Request

// queue is the queue of a controller. The run decides which of its requests is handled next, so workers of the
// controller get none. It has the delays of controllers.Add.
type queue struct {
	mu sync.Mutex
	// ready are the requests to handle, waiting those to handle at a time, and processing those that are being
	// handled. failures are the failures in a row.
	ready, processing map[request]bool
	waiting           map[request]time.Time
	failures          map[request]int
	closed            chan struct{}
}

func newQueue() *queue {
	return &queue{
		ready: map[request]bool{}, processing: map[request]bool{}, waiting: map[request]time.Time{}, failures: map[request]int{},
		closed: make(chan struct{}),
	}
}

// pop removes one of the requests that are ready.
func (q *queue) pop(r *rand.Rand) (request, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for each, at := range q.waiting {
		if !at.After(now) {
			delete(q.waiting, each)
			q.ready[each] = true
		}
	}
	var candidates []request
	for each := range q.ready {
		if !q.processing[each] {
			candidates = append(candidates, each)
		}
	}
	if len(candidates) == 0 {
		return request{}, false
	}
	slices.SortFunc(candidates, func(a, b request) int { return strings.Compare(a.String(), b.String()) })
	next := candidates[r.IntN(len(candidates))]
	delete(q.ready, next)
	q.processing[next] = true
	return next, true
}

// next returns when the next request is ready, or zero.
func (q *queue) next() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) > 0 {
		return time.Now()
	}
	var first time.Time
	for _, at := range q.waiting {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// handled records the result of a request.
func (q *queue) handled(r request, result reconcile.Result, err error) {
	q.Done(r)
	switch {
	case err != nil:
		q.AddRateLimited(r)
	case result.RequeueAfter > 0:
		q.Forget(r)
		q.AddAfter(r, result.RequeueAfter)
	default:
		q.Forget(r)
	}
}

// Add adds a request.
func (q *queue) Add(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready[r] = true
}

// AddAfter adds a request after the time.
func (q *queue) AddAfter(r request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if after <= 0 {
		q.ready[r] = true
		return
	}
	at := time.Now().Add(after)
	if before, found := q.waiting[r]; !found || at.Before(before) {
		q.waiting[r] = at
	}
}

// AddRateLimited adds a request after its back-off.
func (q *queue) AddRateLimited(r request) {
	q.mu.Lock()
	after := min(10*time.Millisecond<<min(q.failures[r], 20), 30*time.Second)
	q.failures[r]++
	q.mu.Unlock()
	q.AddAfter(r, after)
}

// Forget forgets the failures of a request.
func (q *queue) Forget(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, r)
}

// NumRequeues returns the number of failures of a request.
func (q *queue) NumRequeues(r request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[r]
}

// Done ends the handling of a request.
func (q *queue) Done(r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.processing, r)
}

// Len returns the number of requests that are ready.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready)
}

// Get waits for the end of the controller.
func (q *queue) Get() (request, bool) {
	<-q.closed
	return request{}, true
}

// ShutDown ends the controller.
func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ShuttingDown() {
		close(q.closed)
	}
}

// ShutDownWithDrain ends the controller.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown reports whether the controller has ended.
func (q *queue) ShuttingDown() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}
