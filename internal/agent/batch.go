// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// maxWrites is the maximum number of slices that are written at the same time.
const maxWrites = 4

// run lists the slices, writes reports and emits their events until ctx ends.
func (r *reporter) run(ctx context.Context, events eventEmitter) {
	loop(ctx, r.wake, r.next, func() {
		r.list(ctx)
		r.report(ctx, events)
	})
}

// flush writes the last report, even if a write has just failed.
func (r *reporter) flush(ctx context.Context, events eventEmitter) {
	clear(r.rejected)
	r.mu.Lock()
	r.wakeBy(time.Now())
	r.mu.Unlock()
	r.report(ctx, events)
}

// next returns the time of the next decision or list. It is zero if none is scheduled.
func (r *reporter) next() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	decide, list := r.wakeAt, r.listAt
	if !decide.IsZero() {
		decide = later(decide, later(r.notBefore, r.writes.notBefore))
	}
	if !list.IsZero() {
		list = later(list, r.lists.notBefore)
	}
	if decide.IsZero() || !list.IsZero() && list.Before(decide) {
		return list
	}
	return decide
}

// batch is what one decision writes.
type batch struct {
	at     time.Time
	plan   report.Plan
	owners []metav1.OwnerReference
	writes []report.Write
	// retry is when to write the slices that are due and could not be written. It is zero if
	// there are none.
	retry time.Time
}

// retryAt records that a slice is written at t or later.
func (b *batch) retryAt(t time.Time) {
	if b.retry.IsZero() || t.Before(b.retry) {
		b.retry = t
	}
}

// report writes the slices that are due.
func (r *reporter) report(ctx context.Context, events eventEmitter) {
	b, due := r.decide(time.Now())
	if !due {
		return
	}
	if len(b.writes) > 0 {
		r.notBefore = b.at.Add(r.interval)
		r.write(ctx, &b, events)
	}
	events.Emit(r.finish(b))
}

// decide returns the batch to write now. It returns false if no decision is due.
func (r *reporter) decide(now time.Time) (batch, bool) {
	// The containers are locked while they change states.
	running := r.running()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wakeAt.IsZero() || r.wakeAt.After(now) {
		return batch{}, false
	}
	r.wakeAt = time.Time{}
	if !r.read || !r.present() {
		return batch{}, false
	}
	plan := r.plan
	plan.Running = running
	decision := report.Decide(now, plan, r.record, r.states, r.changed)
	r.record, r.changed = decision.Record, map[string]bool{}
	if !decision.Next.IsZero() {
		r.wakeBy(decision.Next)
	}
	b := batch{at: now, plan: r.plan, owners: r.owners, writes: decision.Writes}
	b.writes = slices.DeleteFunc(b.writes, func(w report.Write) bool {
		rejected := r.rejected[w.Number]
		if rejected == nil || !rejected.notBefore.After(now) {
			return false
		}
		b.retryAt(rejected.notBefore)
		return true
	})
	return b, true
}

// write writes the slices of a batch in parallel.
func (r *reporter) write(ctx context.Context, b *batch, events eventEmitter) {
	results := make([]error, len(b.writes))
	var written atomic.Bool
	var group errgroup.Group
	group.SetLimit(maxWrites)
	for i, w := range b.writes {
		group.Go(func() error {
			if results[i] = r.send(ctx, b, w); results[i] == nil {
				written.Store(true)
				events.Emit(r.wrote(b, w))
			}
			return nil
		})
	}
	_ = group.Wait()
	if written.Load() && r.writes.succeeded() {
		r.log.Info("Resumed writing reports")
	}
	for i, w := range b.writes {
		if results[i] == nil {
			delete(r.rejected, w.Number)
			continue
		}
		r.failed(ctx, b, w.Number, results[i], written.Load())
	}
}

func (r *reporter) send(ctx context.Context, b *batch, w report.Write) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	start := time.Now()
	name := seamarkv1alpha1.SliceName(r.node, w.Number)
	if w.Delete {
		err := r.store.DeleteSlice(ctx, name)
		r.metrics.Reported(0, time.Since(start), err)
		return err
	}
	slice := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: b.owners}, NodeName: r.node, Pods: w.Pods,
	}
	size, err := r.store.WriteSlice(ctx, slice, !w.Create)
	r.metrics.Reported(size, time.Since(start), err)
	return err
}

// wrote records a written slice and returns its events.
func (r *reporter) wrote(b *batch, w report.Write) []report.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.record.Events(b.plan, w)
	for _, e := range events {
		r.log.V(logging.Writes).Info("Reported state", "pod", e.Pod.Namespace+"/"+e.Pod.Name, "probe", e.Probe.Name, "state", string(e.State))
	}
	r.record = r.record.Wrote(b.at, w)
	return events
}

// failed schedules another attempt. The kind of error does not matter: the next attempt has the
// newest states. A slice that fails although others are written does not delay those. If no
// slice can be written, all wait.
func (r *reporter) failed(ctx context.Context, b *batch, number int, err error, othersWritten bool) {
	one := r.rejected[number]
	switch {
	case one == nil && othersWritten:
		one = new(newRetry())
		r.rejected[number] = one
	case one == nil && !r.writes.notBefore.After(time.Now()):
		one = &r.writes
	case one == nil:
		b.retryAt(r.writes.notBefore)
		return
	}
	if one.failed() && ctx.Err() == nil {
		r.log.Error(err, "Failed to write report, retrying", "slice", seamarkv1alpha1.SliceName(r.node, number))
	}
	b.retryAt(one.notBefore)
}

// finish ends a batch and returns the events for errors that are due.
func (r *reporter) finish(b batch) []report.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.retry.IsZero() {
		r.status.Reported()
	} else {
		r.wakeBy(b.retry)
	}
	events, next := r.announcer.Due(b.at, r.plan, r.record)
	if !next.IsZero() {
		r.wakeBy(next)
	}
	for _, e := range events {
		r.log.Info("Probe has a problem", "pod", e.Pod.Namespace+"/"+e.Pod.Name, "probe", e.Probe.Name, "message", e.Message)
	}
	return events
}
