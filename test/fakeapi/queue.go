// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue returns the queue of a controller, which ends with the test.
func Queue(tb testing.TB) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	tb.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	tb.Cleanup(q.ShutDown)
	return q
}

// Drain removes all requests from the queue and returns them in order.
func Drain(q workqueue.TypedRateLimitingInterface[reconcile.Request]) []reconcile.Request {
	var requests []reconcile.Request
	for q.Len() > 0 {
		request, _ := q.Get()
		q.Done(request)
		requests = append(requests, request)
	}
	return requests
}
