// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/fairqueue"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// interval is the minimum time between two pods whose marks become those of stale states, or are no
// longer: 100 pods per second. A zone of 200 nodes with 110 pods each takes 3 minutes and 40 seconds.
const interval = 10 * time.Millisecond

// Limiter permits pods one after the other to be marked, those of each namespace in turn, so that many
// nodes that are lost at once do not cause as many writes at once.
type Limiter struct {
	pods    *controllers.Inbox
	queue   workqueue.TypedInterface[types.NamespacedName]
	permits keyed.Store[types.NamespacedName, struct{}]
}

// NewLimiter returns a Limiter that enqueues the pods when they are permitted.
func NewLimiter(pods *controllers.Inbox) *Limiter {
	return &Limiter{pods: pods, queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{
		Name: "stale", Queue: fairqueue.New(func(pod types.NamespacedName) string { return pod.Namespace }),
	})}
}

// Ask makes the pod wait for its permit, unless it waits already.
func (p *Limiter) Ask(pod types.NamespacedName) { p.queue.Add(pod) }

// Take reports whether the pod has a permit, and uses it up.
func (p *Limiter) Take(pod types.NamespacedName) bool {
	_, permitted := p.permits.Take(pod)
	return permitted
}

// Waiting returns the number of pods that wait.
func (p *Limiter) Waiting() int { return p.queue.Len() }

// Start gives permits until the context ends. It implements manager.Runnable.
func (p *Limiter) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		pod, ended := p.queue.Get()
		if ended {
			return nil
		}
		p.permits.Set(pod, struct{}{})
		p.queue.Done(pod)
		p.pods.Enqueue(pod)
		timer.Reset(interval)
	}
}
