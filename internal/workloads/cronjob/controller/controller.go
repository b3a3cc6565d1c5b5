// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs AdvancedCronJobs: it carries out the plans of package cronjob. It creates Jobs and
// BroadcastJobs, whose names are those of their scheduled times, so that a creation whose answer is lost is found and not repeated.
package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// cachePause is the time between two looks at a cache that does not have the controller's own writes yet.
	cachePause = 50 * time.Millisecond
	// statusPause is the time between the creation of a Job and the write of the status, which waits behind the
	// objects that are due, because of its priority: it takes the API server longer than the creation. Others
	// have the priority 0.
	statusPause    = 10 * time.Millisecond
	statusPriority = -1
)

// Kind returns the kind of the objects.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("AdvancedCronJob") }

// Options are the dependencies of a Controller. All but BroadcastJobs are required.
type Options struct {
	// Options have the informer of AdvancedCronJobs, as Sets.
	reconciler.Options
	// Jobs is the informer of Jobs with reconciler.ControllerIndexers, and BroadcastJobs that of BroadcastJobs, nil if they are not
	// served.
	Jobs, BroadcastJobs reconciler.Store
	// Live reads without the cache.
	Live client.Reader
}

// Controller runs the objects.
type Controller struct {
	Options
	expectations reconciler.ExpectationStore[expectations]
}

// New returns a Controller.
func New(options Options) *Controller {
	return &Controller{Options: options}
}

// Add runs the Controller under the manager, with at most concurrency objects at a time.
func (c *Controller) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	sources := []source.Source{
		source.Kind(informers, &v1alpha1.AdvancedCronJob{}, controllers.Specs[*v1alpha1.AdvancedCronJob]()),
		source.Kind(informers, &batchv1.Job{}, controllers.Changes(changes(cronjob.OfJob))),
		c.Pause.Source(reconciler.EnqueueAll(c.Stores.Sets)),
	}
	if c.BroadcastJobs != nil {
		sources = append(sources, source.Kind(informers, &v1alpha1.BroadcastJob{}, controllers.Changes(changes(cronjob.OfBroadcastJob))))
	}
	return controllers.Add(mgr, "advancedcronjob", reconciler.SubjectSet, c, concurrency, sources...)
}

// Reconcile does what is due for an object, and comes back at its next scheduled time.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found, _, _ := c.Stores.Sets.GetIndexer().GetByKey(request.String())
	object, ok := found.(*v1alpha1.AdvancedCronJob)
	if !ok || object.DeletionTimestamp != nil {
		c.expectations.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if c.Pause.Active() {
		return reconcile.Result{}, nil
	}
	if isolated, result, err := reconciler.Isolated(ctx, c.Client, c.Recorder, c.Now(), Kind(), object); isolated {
		return result, err
	}
	expected := c.expectations.Get(object)
	if !expected.cached(c) {
		c.Metrics.Waited(Kind().Kind)
		return reconcile.Result{RequeueAfter: cachePause}, nil
	}
	plan := cronjob.New(cronjob.Input{
		Object: object, Jobs: c.jobs(object), Broadcasts: c.BroadcastJobs != nil, Started: expected.started, Now: c.Now(),
	})
	created, failed := c.carryOut(ctx, object, expected, &plan)
	if created {
		c.record(object, plan.Events)
		return reconcile.Result{RequeueAfter: statusPause, Priority: new(statusPriority)}, nil
	}
	if err := c.write(ctx, object, expected, &plan.Status); err != nil {
		return reconcile.Result{}, err
	}
	c.record(object, plan.Events)
	switch {
	case failed != nil:
		c.Metrics.Failed(Kind().Kind)
		return reconcile.Result{}, failed
	case plan.Next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: planning.Until(plan.Next, c.Now()), Priority: new(0)}, nil
}

// jobs returns the Jobs and BroadcastJobs of an object.
func (c *Controller) jobs(object *v1alpha1.AdvancedCronJob) (jobs []cronjob.Job) {
	key := owner.Of(Kind(), object)
	for _, job := range reconciler.Controlled[*batchv1.Job](c.Jobs, key) {
		jobs = append(jobs, cronjob.OfJob(job))
	}
	if c.BroadcastJobs == nil {
		return jobs
	}
	for _, job := range reconciler.Controlled[*v1alpha1.BroadcastJob](c.BroadcastJobs, key) {
		jobs = append(jobs, cronjob.OfBroadcastJob(job))
	}
	return jobs
}

func (c *Controller) record(object *v1alpha1.AdvancedCronJob, events []cronjob.Event) {
	for _, event := range events {
		c.Recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// write writes the status if it differs.
func (c *Controller) write(ctx context.Context, object *v1alpha1.AdvancedCronJob, expected *expectations, status *v1alpha1.AdvancedCronJobStatus) error {
	if equality.Semantic.DeepEqual(&object.Status, status) {
		return nil
	}
	written := object.DeepCopy()
	written.Status = *status
	if changed, err := reconciler.WriteStatus(ctx, c.Client, c.Metrics, Kind().Kind, object, written); !changed {
		return err
	}
	expected.object = written.ResourceVersion
	expected.created = false
	return nil
}

// changes returns what enqueues the object of a Job that has ended or is gone. A new one was created for the object,
// which is enqueued.
func changes[J interface {
	comparable
	client.Object
}](of func(J) cronjob.Job) func(context.Context, controllers.Queue, J, J, bool) {
	return func(_ context.Context, q controllers.Queue, before, after J, _ bool) {
		var none J
		if before == none {
			return
		}
		key, found := owner.Controller(before, Kind())
		if !found {
			return
		}
		if after != none && of(before).Ended == of(after).Ended && (before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil) {
			return
		}
		controllers.Enqueue(q, key)
	}
}

// Progress returns what the metrics count of each object: whether the API server has refused its last Job.
func (c *Controller) Progress() []planning.Progress {
	return reconciler.ProgressOfAll(c.Stores.Sets, func(object *v1alpha1.AdvancedCronJob) planning.Progress {
		return planning.Refused(object.Status.Conditions, v1alpha1.AdvancedCronJobJobsCreated)
	})
}
