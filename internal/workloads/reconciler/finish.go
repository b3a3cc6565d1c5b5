// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// progressPause is how long a status may differ while the set is not settled. The write of a
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
	// again is when a step is planned again whose writes cause an event, in case that the event was
	// handled before.
	again = 200 * time.Millisecond
)

// Wait returns when a set without a step is reconciled next: soon if the cache is too old for a step.
// The events of pods report what was written to them, but there may be none for other objects.
func (b *Base) Wait(request reconcile.Request) reconcile.Result {
	return reconcile.Result{RequeueAfter: b.memory.recheck(request.NamespacedName, b.Now())}
}

// Execute executes the actions and remembers what was written.
func (b *Base) Execute(ctx context.Context, set client.Object, actions *workload.Actions) apply.Step {
	if actions.Empty() {
		return apply.Step{}
	}
	step := b.Executor.Execute(ctx, apply.Set{Kind: b.Kind, Object: set}, actions)
	b.memory.wrote(client.ObjectKeyFromObject(set), set.GetUID(), &step)
	logger := log.FromContext(ctx)
	logger.V(logging.Writes).Info("Executed step", "writes", step.Writes,
		"creates", len(actions.Creates), "deletes", len(actions.Deletes), "patches", len(actions.Patches),
		"outdated", step.Outdated, "incomplete", step.Incomplete)
	for range len(step.Failures) + len(step.Errs) {
		b.Metrics.Failed(b.Kind.Kind)
	}
	b.record(set, actions.Events, &step)
	return step
}

// Status is the status of a set before and after a step.
type Status struct {
	// Before and After are pointers to the status that the step started from and to that after it.
	Before, After any
	// Settled reports whether all pods of the set exist and are available and the step wrote nothing, so
	// that the status is final until something changes.
	Settled bool

	// events are recorded after the status has been written.
	events []workload.Event
}

// Finish writes the status if it changed, and returns when the set is reconciled next. The status of a
// settled set is written at once. That of others may differ for the pause of progress, and for
// longestPostponement while steps write to pods.
func (b *Base) Finish(
	ctx context.Context, set client.Object, actions *workload.Actions, step *apply.Step, status Status,
) (reconcile.Result, error) {
	status.events = actions.StatusEvents
	result, err := b.finish(ctx, set, actions, step, status)
	if status.Settled {
		b.memory.settled(client.ObjectKeyFromObject(set), set.GetUID())
	}
	if wait := b.report(set, status.Settled); err == nil {
		result.RequeueAfter = sooner(result.RequeueAfter, wait)
	}
	// Only events give a set a priority.
	result.Priority = new(0)
	return result, err
}

func (b *Base) finish(
	ctx context.Context, set client.Object, actions *workload.Actions, step *apply.Step, status Status,
) (reconcile.Result, error) {
	switch {
	case step.Ended:
		return reconcile.Result{}, nil
	case len(step.Errs) > 0:
		return b.retry(ctx, set, errors.Join(step.Errs...)), nil
	case len(step.Failures) == 0 && (step.Outdated || step.Incomplete):
		b.memory.await(client.ObjectKeyFromObject(set), set.GetUID())
		if err := b.publishOverdue(ctx, set, status); err != nil {
			return b.retry(ctx, set, err), nil
		}
		return reconcile.Result{RequeueAfter: b.soon(step)}, nil
	}
	b.memory.recovered(client.ObjectKeyFromObject(set), set.GetUID())
	if b.differs(set, status) {
		if wait := b.postpone(set, step, status.Settled); wait > 0 {
			return reconcile.Result{RequeueAfter: sooner(wait, actions.RequeueAfter)}, nil
		}
		if err := b.publish(ctx, set, status); err != nil {
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
				// The event of the change reconciles the set again.
				return reconcile.Result{RequeueAfter: again}, nil
			}
			return b.retry(ctx, set, err), nil
		}
	}
	if len(step.Failures) > 0 {
		failure := &step.Failures[0]
		return reconcile.Result{}, fmt.Errorf("%d writes failed, the first: %s: %w", len(step.Failures), failure.Object, failure.Err)
	}
	return reconcile.Result{RequeueAfter: actions.RequeueAfter}, nil
}

// retry logs an error that may pass, and returns when the step is planned again: soon even after an
// outage, because no event may follow from its end. An error at the end of the process is not one.
func (b *Base) retry(ctx context.Context, set client.Object, err error) reconcile.Result {
	delay := b.memory.failed(client.ObjectKeyFromObject(set), set.GetUID())
	if ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to execute step, retrying", "after", delay)
	}
	return reconcile.Result{RequeueAfter: delay}
}

// soon returns when a step that was interrupted continues: at once after its budget, and when the
// cache has changed after a conflict.
func (b *Base) soon(step *apply.Step) time.Duration {
	if step.Incomplete && !step.Outdated {
		return time.Millisecond
	}
	return again
}

// sooner returns the shorter of two times, of which zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// postpone returns the time until the status must be written, zero if now. After writes to pods,
// their events plan the next step, which knows more. Failures are written at once.
func (b *Base) postpone(set client.Object, step *apply.Step, settled bool) time.Duration {
	switch {
	case len(step.Failures) > 0:
		return 0
	case (step.Pods != "" || len(step.Deleted) > 0) && !b.overdue(set):
		return again
	case settled:
		return 0
	default:
		differing := b.memory.differing(client.ObjectKeyFromObject(set), set.GetUID(), b.Now())
		return max(0, progress(b.memory.changing())-differing)
	}
}

// progress returns how long the status of a set that is not settled may differ while so many sets have
// a status that differs.
func progress(changing int) time.Duration {
	return min(max(progressPause, time.Duration(changing)*progressPerSet), longestProgress)
}

// differs reports whether the status must be written, and remembers since when.
func (b *Base) differs(set client.Object, status Status) bool {
	differs := !equality.Semantic.DeepEqual(status.Before, status.After)
	b.memory.compared(client.ObjectKeyFromObject(set), set.GetUID(), differs, b.Now())
	return differs
}

// overdue reports whether the status has differed for too long.
func (b *Base) overdue(set client.Object) bool {
	return b.memory.differing(client.ObjectKeyFromObject(set), set.GetUID(), b.Now()) >= longestPostponement
}

// publishOverdue writes the status after a step that was interrupted if it has differed for too long.
// A set that has changed gets its status with the next step.
func (b *Base) publishOverdue(ctx context.Context, set client.Object, status Status) error {
	if !b.differs(set, status) || !b.overdue(set) {
		return nil
	}
	err := b.publish(ctx, set, status)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// publish writes the status. It decodes only the metadata of the response: a set is as large as its
// template.
func (b *Base) publish(ctx context.Context, set client.Object, status Status) error {
	patch, err := statusPatch(set.GetResourceVersion(), status)
	if err != nil {
		return err
	}
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(b.Kind)
	stored.SetNamespace(set.GetNamespace())
	stored.SetName(set.GetName())
	err = b.Client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	b.Metrics.StatusWritten(b.Kind.Kind)
	for i := range status.events {
		b.Recorder.Event(set, status.events[i].Type, status.events[i].Reason, status.events[i].Message())
	}
	b.memory.published(client.ObjectKeyFromObject(set), set.GetUID(), stored.GetResourceVersion())
	return nil
}

// statusPatch returns a merge patch that replaces the status of the version of a set: fields that the
// new one does not have are null.
func statusPatch(version string, status Status) ([]byte, error) {
	before, err := fieldsOf(status.Before)
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(status.After)
	if err != nil {
		return nil, err
	}
	for field := range before {
		if _, kept := fields[field]; !kept {
			fields[field] = json.RawMessage("null")
		}
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   fields,
	})
}

// fieldsOf returns the encoded fields of a status.
func fieldsOf(status any) (map[string]json.RawMessage, error) {
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("decode the status: %w", err)
	}
	return fields, nil
}
