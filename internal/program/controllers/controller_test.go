// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A namespace has 1,000 pods that change again as soon as they are written. Another one has a pod
// that changes now and then.
func TestOneNamespaceDoesNotDelayAnother(t *testing.T) {
	const workers, pods, changes = 10, 1000, 100
	q := newFairQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	defer q.ShutDown()
	for i := range pods {
		Enqueue(q, types.NamespacedName{Namespace: "hostile", Name: fmt.Sprint(i)})
	}
	// All workers are busy.
	var busy []reconcile.Request
	get := func() reconcile.Request {
		next, _ := q.Get()
		return next
	}
	for range workers {
		busy = append(busy, get())
	}
	honest := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "honest", Name: "a"}}
	for change := range changes {
		q.Add(honest)
		worst := 0
		for next := (reconcile.Request{}); next != honest; worst++ {
			// The first worker is done.
			q.Add(busy[0])
			q.Done(busy[0])
			next = get()
			if busy = busy[1:]; next == honest {
				q.Done(honest)
				busy = append(busy, get())
			} else {
				busy = append(busy, next)
			}
		}
		if worst > 2 {
			t.Fatalf("change %d waits until %d workers are done, want at most 2", change, worst)
		}
	}
}

func TestFairQueueDelays(t *testing.T) {
	q := newFairQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	defer q.ShutDown()
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	for _, add := range []func(reconcile.Request){q.AddRateLimited, func(r reconcile.Request) { q.AddAfter(r, time.Millisecond) }} {
		add(reconcile.Request{NamespacedName: name})
		request, _ := q.Get()
		q.Done(request)
		if request.NamespacedName != name || q.Len() != 0 {
			t.Errorf("got %s, and %d more", request, q.Len())
		}
	}
}

func TestFairQueueKeepsPriorities(t *testing.T) {
	q, _ := newFairQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)).(*fair)
	defer q.ShutDown()
	request := func(namespace, name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	for i := range 100 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, request("hostile", fmt.Sprint(i)))
	}
	for i := range 3 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(i - 1)}, request("honest", "a"), request("honest", fmt.Sprint("b", i)))
	}
	want := []string{
		"hostile/0 1", "honest/a 1", "hostile/1 1", "honest/b2 1", "hostile/2 1", "honest/b1 0", "hostile/3 1", "honest/b0 -1", "hostile/4 1", "hostile/5 1",
	}
	for _, next := range want {
		if got, priority, _ := q.GetWithPriority(); fmt.Sprint(got, " ", priority) != next {
			t.Fatalf("got %s with priority %d, want %s", got, priority, next)
		}
	}
}
