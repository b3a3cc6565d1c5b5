// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// progressPause is how long a status may differ while the set has not converged. The write of a
	// status costs the API server as much as the creation of three pods, and more counts follow soon:
	// while many pods become ready, the status follows with one write per pause.
	progressPause = time.Second
	// progressPerSet is the part of the pause that each set with a status that differs adds: while
	// hundreds of sets change at once, the API server is busy with their pods.
	progressPerSet = 50 * time.Millisecond
	// longestPostponement is how long a status may differ while steps write to pods or are interrupted:
	// a rollout of a large set writes in every step.
	longestPostponement = 5 * time.Second
	// longestProgress is how long it may differ while many sets change: the changes of most sets are
	// complete by then, and need one write.
	longestProgress = 10 * time.Second
	// retryDelay is when a step is planned again whose writes cause an event, in case that the event was
	// handled before.
	retryDelay = 200 * time.Millisecond
)

// execute executes the actions and expects what was written.
func (b *base) execute(ctx context.Context, set client.Object, actions *planning.Actions) apply.Outcome {
	if actions.Empty() {
		return apply.Outcome{}
	}
	outcome := b.Executor.Execute(ctx, apply.Set{GroupVersionKind: b.kind, Object: set}, actions)
	b.expect(set, func(e *expectations) { e.wrote(&outcome) })
	logger := log.FromContext(ctx)
	logger.V(logging.Writes).Info("Executed step", "writes", outcome.Writes,
		"creates", len(actions.Creates), "deletes", len(actions.Deletes), "patches", len(actions.Patches),
		"outdated", outcome.Outdated, "incomplete", outcome.Incomplete)
	b.record(set, actions.Events, &outcome)
	return outcome
}

// Status is the status of a set before and after a step.
type Status struct {
	// Before and After are pointers to the status that the step started from and to that after it.
	Before, After any
	// Converged reports whether all pods of the set exist and are available and the step wrote nothing, so
	// that the status is final until something changes.
	Converged bool
	// Complete reports whether the rollout is complete. The step may still write, for example delete an old revision.
	Complete bool

	// events are recorded after the status has been written.
	events []planning.Event
}

// finish writes the status if it changed, and returns when the set is reconciled next. The status of a converged set is written
// at once, and so is that of one whose rollout is complete: clients wait for it. That of others may differ for the pause of
// progress, and for longestPostponement while steps write to pods.
func (b *base) finish(
	ctx context.Context, set client.Object, actions *planning.Actions, outcome *apply.Outcome, status Status,
) (reconcile.Result, error) {
	status.events = actions.StatusEvents
	result, err := b.conclude(ctx, set, actions, outcome, status)
	if status.Converged {
		b.expect(set, func(e *expectations) { e.begun = time.Time{} })
	}
	if wait := b.report(set, status.Converged); err == nil {
		result.RequeueAfter = earliest.Wait(result.RequeueAfter, wait)
	}
	// Only events give a set a priority.
	result.Priority = new(0)
	return result, err
}

func (b *base) conclude(
	ctx context.Context, set client.Object, actions *planning.Actions, outcome *apply.Outcome, status Status,
) (reconcile.Result, error) {
	switch {
	case outcome.Ended:
		return reconcile.Result{}, nil
	case len(outcome.Errs) > 0:
		return b.retry(ctx, set, errors.Join(outcome.Errs...)), nil
	case len(outcome.Failures) == 0 && (outcome.Outdated || outcome.Incomplete):
		b.expect(set, func(e *expectations) { e.waiting = true }) // Any event of the set matters.
		if err := b.publishOverdue(ctx, set, status); err != nil {
			return b.retry(ctx, set, err), nil
		}
		if outcome.Outdated {
			return reconcile.Result{RequeueAfter: retryDelay}, nil
		}
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil // The budget of the step was used up.
	}
	if len(outcome.Failures) == 0 {
		b.expect(set, func(e *expectations) { e.failures = 0 })
	}
	if differs, since := b.differs(set, status); differs {
		if wait := b.postpone(outcome, status.Converged || status.Complete, since); wait > 0 {
			return reconcile.Result{RequeueAfter: earliest.Wait(wait, actions.RequeueAfter)}, nil
		}
		switch published, err := b.publish(ctx, set, status); {
		case err != nil:
			return b.retry(ctx, set, err), nil
		case !published: // The event of the change reconciles the set again.
			return reconcile.Result{RequeueAfter: retryDelay}, nil
		}
	}
	if len(outcome.Failures) > 0 {
		failure := &outcome.Failures[0]
		err := fmt.Errorf("%d writes failed, the first: %s: %w", len(outcome.Failures), failure.Object, failure.Err)
		if actions.RequeueAfter == 0 {
			return reconcile.Result{}, err
		}
		// What the step waits for does not depend on the writes that failed.
		result := b.retryWithin(ctx, set, err, longestRefused)
		result.RequeueAfter = min(result.RequeueAfter, max(actions.RequeueAfter, time.Second))
		return result, nil
	}
	return reconcile.Result{RequeueAfter: min(actions.RequeueAfter, planning.LongestWait)}, nil
}

// retry logs an error that may pass, and returns when the step is planned again: soon even after an
// outage, because no event may follow from its end. An error at the end of the process is not one.
func (b *base) retry(ctx context.Context, set client.Object, err error) reconcile.Result {
	return b.retryWithin(ctx, set, err, longestWait)
}

// retryWithin is retry with another longest time.
func (b *base) retryWithin(ctx context.Context, set client.Object, err error, longest time.Duration) reconcile.Result {
	var delay time.Duration
	b.expect(set, func(e *expectations) { delay = e.failed(longest) })
	if ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to execute step, retrying", "after", delay)
	}
	return reconcile.Result{RequeueAfter: delay}
}

// postpone returns the time until a status that has differed for some time must be written, zero if now.
// After writes to pods, their events plan the next step, which knows more. Failures are written at once, and
// a final status.
func (b *base) postpone(outcome *apply.Outcome, final bool, differed time.Duration) time.Duration {
	switch {
	case len(outcome.Failures) > 0:
		return 0
	case (outcome.Pods != "" || len(outcome.Deleted) > 0) && differed < longestPostponement:
		return retryDelay
	case final:
		return 0
	default:
		return max(0, progress(b.expectations.changing())-differed)
	}
}

// progress returns how long the status of a set that has not converged may differ while so many sets have
// a status that differs.
func progress(changing int) time.Duration {
	return min(max(progressPause, time.Duration(changing)*progressPerSet), longestProgress)
}

// differs reports whether the status must be written, and for how long.
func (b *base) differs(set client.Object, status Status) (bool, time.Duration) {
	differs := !equality.Semantic.DeepEqual(status.Before, status.After)
	return differs, b.expectations.compared(client.ObjectKeyFromObject(set), set.GetUID(), differs, b.Now())
}

// publishOverdue writes the status after a step that was interrupted if it has differed for too long.
// A set that has changed gets its status with the next step.
func (b *base) publishOverdue(ctx context.Context, set client.Object, status Status) error {
	if differs, since := b.differs(set, status); !differs || since < longestPostponement {
		return nil
	}
	_, err := b.publish(ctx, set, status)
	return err
}

// unplanned reports to users why no step could be planned: it writes the status if it changed, and
// then records an event, so that the same reason is reported once. It returns the reason, so that the set is
// tried again with a backoff.
func (b *base) unplanned(ctx context.Context, set client.Object, reason error, status Status) error {
	if differs, _ := b.differs(set, status); !differs {
		return reason
	}
	published, err := b.publish(ctx, set, status)
	if published {
		b.Recorder.Event(set, corev1.EventTypeWarning, "FailedScale", reason.Error())
	}
	return errors.Join(reason, err)
}

// publish writes the status, and reports whether it did: not if the set has changed.
func (b *base) publish(ctx context.Context, set client.Object, status Status) (bool, error) {
	fields, err := status.fields()
	if err != nil {
		return false, err
	}
	version, err := mergeStatus(ctx, b.Client, b.kind, set, fields)
	if version == "" || err != nil {
		return false, err
	}
	b.Metrics.StatusWritten(b.kind.Kind)
	for i := range status.events {
		b.Recorder.Event(set, status.events[i].Type, status.events[i].Reason, status.events[i].Message())
	}
	b.expectations.published(client.ObjectKeyFromObject(set), set.GetUID(), version)
	return true, nil
}

// fields returns the fields that replace the status: those that the status after the step does not have are null.
func (s Status) fields() (map[string]any, error) {
	before, errBefore := fieldsOf(s.Before)
	fields, err := fieldsOf(s.After)
	if err := errors.Join(errBefore, err); err != nil {
		return nil, err
	}
	for field := range before {
		if _, kept := fields[field]; !kept {
			fields[field] = nil
		}
	}
	return fields, nil
}

// fieldsOf returns the encoded fields of a status.
func fieldsOf(status any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return fields, nil
}

// EventPause is the time between two events about the pods of a set that has not converged: a rollout of a
// large set writes to pods several times per second, and each event costs the API server nearly as much
// as the creation of a pod.
const EventPause = 5 * time.Second

// record records the first failure of a step, and its events. Those about pods wait for report. Those of
// a step that did not succeed are only about the pods whose writes did: the next step has events about
// the others.
func (b *base) record(set client.Object, events []planning.Event, outcome *apply.Outcome) {
	if len(outcome.Failures) > 0 {
		failure, reason := &outcome.Failures[0], "FailedScale"
		if failure.Update {
			reason = "FailedUpdate"
		}
		b.Recorder.Eventf(set, corev1.EventTypeWarning, reason, "%s: %v", failure.Object, failure.Err)
	}
	succeeded, written := outcome.Succeeded(), sets.New(outcome.Written...)
	for i := range events {
		event := events[i]
		if !succeeded {
			event = event.Of(written)
		}
		switch {
		case len(event.Pods) > 0:
			b.expect(set, func(e *expectations) { e.events = planning.AddEvent(e.events, event) })
		case succeeded:
			b.Recorder.Event(set, event.Type, event.Reason, event.Message())
		}
	}
}

// report records the events about pods if the set has converged or the pause has ended. Otherwise it
// returns the time until then, zero if there are no events.
func (b *base) report(set client.Object, converged bool) (wait time.Duration) {
	var events []planning.Event
	b.expect(set, func(e *expectations) {
		left := EventPause - b.Now().Sub(e.reported)
		switch {
		case len(e.events) == 0:
		case left > 0 && !converged:
			wait = left
		default:
			events, e.events, e.reported = e.events, nil, b.Now()
		}
	})
	for i := range events {
		b.Recorder.Event(set, events[i].Type, events[i].Reason, events[i].Message())
	}
	return wait
}
