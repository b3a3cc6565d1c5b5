// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/program/fairqueue"
)

// newFairQueue returns a queue in which namespaces take turns. Those of a namespace are in the order of their
// priorities, as in the queues of controller-runtime.
func newFairQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) Queue {
	q := &fair{waiting: map[reconcile.Request]int{}, taken: map[reconcile.Request]int{}}
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
		Name: name, Queue: fairqueue.NewWithPriorities(func(request reconcile.Request) string { return request.Namespace }, q.priority, q.take),
	})
	q.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: ready,
		}),
	})
	return q
}

// fair is a priorityqueue.PriorityQueue.
type fair struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu sync.Mutex
	// waiting are the priorities of the requests that are in the queue or will be, and taken those of the requests that
	// are handled. The priority 0 is in none.
	waiting, taken map[reconcile.Request]int
}

// priority returns the priority of a request in the queue.
func (q *fair) priority(request reconcile.Request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[request]
}

// take is called with a request that leaves the queue.
func (q *fair) take(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if priority, set := q.waiting[request]; set {
		q.taken[request] = priority
		delete(q.waiting, request)
	}
}

// AddWithOpts adds requests. One that is added several times has the highest of its priorities.
func (q *fair) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		if options.Priority != nil {
			q.raise(request, *options.Priority)
		}
		switch {
		case options.RateLimited:
			q.AddRateLimited(request)
		case options.After > 0:
			q.AddAfter(request, options.After)
		default:
			q.Add(request)
		}
	}
}

func (q *fair) raise(request reconcile.Request, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before, set := q.waiting[request]; !set || before < priority {
		q.waiting[request] = priority
	}
}

// GetWithPriority waits for the next request.
func (q *fair) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, shutdown = q.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	priority = q.taken[request]
	delete(q.taken, request)
	return request, priority, shutdown
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &fair{}
