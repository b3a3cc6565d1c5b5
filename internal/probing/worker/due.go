// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"math"
	"time"

	"github.com/seamark-dev/seamark/internal/probing/pace"
)

// enqueue updates the position of a probe in the queue. It removes the probe while it is
// not due, has a run in flight that cannot become late, or belongs to an unknown container.
func (l *loop) enqueue(e *entry) {
	evaluator, _ := e.gate()
	due, ok := evaluator.Due()
	if f, busy := l.inFlight[e.task.Key]; busy {
		due, ok = f.lateAt(e.period())
	}
	if !ok || l.unknown[e.task.container()] {
		l.dequeue(e)
		return
	}
	if e.paced.waits() && due.Equal(e.due) {
		return
	}
	l.dequeue(e)
	l.queue.put(e, due)
}

// dequeue removes a probe from the queue and from the pacer.
func (l *loop) dequeue(e *entry) {
	l.queue.remove(e)
	if e.paced.waits() {
		l.pacer.Withdraw(e.paced.namespace, e.task.Key)
		e.paced = paced{}
	}
}

// untilDue returns the time until the next probe is due, or may run.
func (l *loop) untilDue() time.Duration {
	due, waits := l.pacer.At()
	if e := l.queue.first(); e != nil && (!waits || e.due.Before(due)) {
		due, waits = e.due, true
	}
	if !waits {
		return math.MaxInt64
	}
	return max(due.Sub(l.options.Now()), 0)
}

// startDue starts every run that is due and within the rates.
func (l *loop) startDue(ctx context.Context) {
	now := l.options.Now()
	for e := l.queue.first(); e != nil && !e.due.After(now); e = l.queue.first() {
		l.queue.remove(e)
		if f, busy := l.inFlight[e.task.Key]; busy {
			l.late(now, e, f)
			continue
		}
		evaluator, target := e.gate()
		if target.Handler == "" {
			evaluator.Begin(now)
			l.enqueue(e)
			continue
		}
		e.paced = paced{since: now, namespace: e.task.Pod.Namespace}
		l.pacer.Await(e.paced.namespace, e.task.Key, max(e.cost, pace.Cost(&target)))
	}
	for key, limit, ok := l.pacer.Next(now); ok; key, limit, ok = l.pacer.Next(now) {
		l.start(ctx, now, l.entries[key], limit)
	}
}
