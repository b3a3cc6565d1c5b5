// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconciler contains what the controllers of workloads share: they gather what a planner
// needs from the cache, execute its step, and write the status. A step is planned only when the
// cache has what the earlier steps of the set wrote, so that nothing is written twice.
package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
)

// SubjectSet is the key of the set in log lines.
const SubjectSet = controllers.SubjectSet

// Metrics counts what a controller does. The kind is that of the sets.
type Metrics interface {
	// Failed counts a write that the API server refused or did not answer.
	Failed(kind string)
	// Waited counts a reconcile that found the cache older than the set's own writes.
	Waited(kind string)
	// StatusWritten counts a write of the status of a set.
	StatusWritten(kind string)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Stores are the informers of the cache.
	Stores Stores
	// Client writes the status of sets.
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader
	// Executor executes steps.
	Executor *apply.Executor
	// Pause is active while another program serves the kind.
	Pause *Pause
	// Recorder records events on sets.
	Recorder record.EventRecorder
	// Metrics counts.
	Metrics Metrics
	// Now is the clock.
	Now func() time.Time
}

// base is what does not depend on the kind of the sets, except for kind and parts.
type base struct {
	Options
	kind schema.GroupVersionKind
	// parts returns the parts of a set that pods and claims depend on.
	parts func(set client.Object) planning.Parts
	// claimSizes makes the sizes of claims matter: a change plans the next step of their set.
	claimSizes bool
	// slots are those of the kind, nil if it has none.
	slots        planning.Slots
	expectations *setExpectations
}

// expect calls do with the expectations of the set.
func (b *base) expect(set client.Object, do func(e *expectations)) {
	b.expectations.update(client.ObjectKeyFromObject(set), set.GetUID(), do)
}

// Reconciler runs the sets of a kind: each reconcile executes the next step of one set.
type Reconciler[S client.Object, T any] struct {
	base
	descriptor planning.Descriptor[S, T]
}

// New returns a Reconciler for the kind.
func New[S client.Object, T any](descriptor planning.Descriptor[S, T], options Options) *Reconciler[S, T] {
	return &Reconciler[S, T]{descriptor: descriptor, base: base{
		Options: options, kind: descriptor.GroupVersionKind, claimSizes: descriptor.ClaimSizes, slots: descriptor.Slots, expectations: newExpectations(),
		parts: func(object client.Object) planning.Parts {
			if set, ok := object.(S); ok {
				return descriptor.Parts(set)
			}
			return planning.Parts{Template: &corev1.PodTemplateSpec{}}
		},
	}}
}

// Add runs the Reconciler under the manager, with at most concurrency sets at a time.
func (r *Reconciler[S, T]) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, strings.ToLower(r.kind.Kind), SubjectSet, r, concurrency, r.sources(informers, r.descriptor.New())...)
}

// Progress returns what the metrics count of each set.
func (r *Reconciler[S, T]) Progress() []planning.Progress {
	return ProgressOfAll(r.Stores.Sets, func(set S) planning.Progress { return r.descriptor.Progress(set, r.descriptor.Status(set)) })
}

// ProgressOfAll returns what the metrics count of each object of the store.
func ProgressOfAll[S any](objects Store, progress func(object S) planning.Progress) []planning.Progress {
	all := []planning.Progress{}
	for _, object := range All[S](objects) {
		all = append(all, progress(object))
	}
	return all
}

// Reconcile executes the next step of the set.
func (r *Reconciler[S, T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if isolated, result, err := r.isolated(ctx, request.NamespacedName); isolated {
		return result, err
	}
	object, in, err := r.observe(request.NamespacedName)
	set, ok := object.(S)
	if !ok || err != nil {
		// A cache that is too old for a step may change without an event: only those of pods are watched.
		var result reconcile.Result
		r.expectations.updateExisting(request.NamespacedName, func(e *expectations) { result.RequeueAfter = e.recheck(r.Now()) })
		return result, err
	}
	before := r.descriptor.Status(set)
	plan, err := r.plan(set, in)
	if err != nil {
		after := r.descriptor.Status(set.DeepCopyObject().(S)) //nolint:forcetypeassert // A copy has the same type.
		r.descriptor.Unplanned(after, err, in.Now)
		r.show(after, rollout.Unplanned(err), in.Now)
		return reconcile.Result{}, r.unplanned(ctx, set, err, Status{Before: before, After: after})
	}
	if len(plan.Creates) > 0 {
		may, err := r.mayCreate(ctx, set)
		if err != nil {
			return r.retry(ctx, set, err), nil
		}
		if !may {
			r.Metrics.Waited(r.kind.Kind)
			var delay time.Duration
			r.expect(set, func(e *expectations) { delay = e.failed(longestWait) })
			return reconcile.Result{RequeueAfter: delay}, nil
		}
	}
	outcome := r.execute(ctx, set, &plan.Actions)
	r.descriptor.Failed(&plan.Status, outcome.Failures, in.Now)
	progress := r.descriptor.Progress(set, &plan.Status)
	state := rollout.Decide(&progress, plan.Outdated)
	r.show(&plan.Status, state, in.Now)
	return r.finish(ctx, set, &plan.Actions, &outcome, Status{
		Before: before, After: &plan.Status, Converged: r.descriptor.Converged(set, &plan), Complete: state.Phase == rollout.Complete,
	})
}

// Pause stops the controller of a kind while another program serves the kind. It is safe for
// concurrent use. Use NewPause to create one.
type Pause struct {
	mu     sync.Mutex
	active bool
	// decided is closed when the pause is set first.
	decided chan struct{}
	// resume enqueue all sets of the controllers.
	resume []func()
}

// NewPause returns an active pause.
func NewPause() *Pause { return &Pause{active: true, decided: make(chan struct{})} }

// Active reports whether the controller must not act.
func (p *Pause) Active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active
}

// Set starts or ends the pause. All sets are enqueued when it ends.
func (p *Pause) Set(active bool) {
	p.mu.Lock()
	var calls []func()
	if !active && p.active {
		calls = slices.Clone(p.resume)
	}
	p.active = active
	select {
	case <-p.decided:
	default:
		close(p.decided)
	}
	p.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// Source returns a source that enqueues all sets when the pause ends. It starts when the pause
// has been set, and the controller with it: otherwise it would reconcile each set twice at the start.
func (p *Pause) Source(all func(q controllers.Queue)) source.Source {
	return source.Func(func(ctx context.Context, q controllers.Queue) error {
		select {
		case <-p.decided:
		case <-ctx.Done():
			return fmt.Errorf("wait for the first look at the lease of OpenKruise's manager: %w", ctx.Err())
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.resume = append(p.resume, func() { all(q) })
		return nil
	})
}
