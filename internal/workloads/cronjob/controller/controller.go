// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs AdvancedCronJobs: it carries out the plans of package cronjob. It creates Jobs, whose
// names are those of their slots, so that a creation whose answer is lost is found and not repeated.
package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob"
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

// Options are the dependencies of a Controller. All are required.
type Options struct {
	// Objects and Jobs are the informers of AdvancedCronJobs, and of Jobs with reconciler.PodIndexers.
	Objects, Jobs reconciler.Store
	// Gate is closed while another program serves the kind.
	Gate *reconciler.Gate
	// Client writes, and Live reads without the cache.
	Client client.Client
	Live   client.Reader
	// Recorder records events on the objects.
	Recorder record.EventRecorder
	// Metrics count writes.
	Metrics reconciler.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Controller runs the objects.
type Controller struct {
	Options
	memory *reconciler.Memory[remembered]
}

// New returns a Controller.
func New(options Options) *Controller {
	return &Controller{Options: options, memory: reconciler.NewMemory[remembered]()}
}

// Add runs the Controller under the manager, with at most concurrency objects at a time.
func (c *Controller) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "advancedcronjob", reconciler.SubjectSet, c, concurrency,
		source.Kind(informers, &v1alpha1.AdvancedCronJob{}, controllers.Changes(c.objectChanged)),
		source.Kind(informers, &batchv1.Job{}, controllers.Changes(c.jobChanged)),
		c.Gate.Source(c.enqueueAll))
}

// Reconcile does what is due for an object, and comes back at its next slot.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found, _, _ := c.Objects.GetIndexer().GetByKey(request.String())
	object, ok := found.(*v1alpha1.AdvancedCronJob)
	if !ok || object.DeletionTimestamp != nil {
		c.memory.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if !c.Gate.Open() {
		return reconcile.Result{}, nil
	}
	known := c.memory.Of(object)
	if !known.cached(c.Objects, c.Jobs) {
		c.Metrics.Waited(Kind().Kind)
		return reconcile.Result{RequeueAfter: cachePause}, nil
	}
	plan := cronjob.New(cronjob.Input{
		Object: object, Jobs: reconciler.Controlled[*batchv1.Job](c.Jobs, object.UID), Started: known.started, Now: c.Now(),
	})
	created, failed := c.carryOut(ctx, object, known, &plan)
	if created {
		c.record(object, plan.Events)
		return reconcile.Result{RequeueAfter: statusPause, Priority: new(statusPriority)}, nil
	}
	if err := c.write(ctx, object, known, &plan.Status); err != nil {
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
	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(c.Now()), time.Nanosecond), Priority: new(0)}, nil
}

func (c *Controller) record(object *v1alpha1.AdvancedCronJob, events []cronjob.Event) {
	for _, event := range events {
		c.Recorder.Event(object, event.Type, event.Reason, event.Message)
	}
}

// write writes the status if it differs.
func (c *Controller) write(ctx context.Context, object *v1alpha1.AdvancedCronJob, known *remembered, status *v1alpha1.AdvancedCronJobStatus) error {
	if equality.Semantic.DeepEqual(&object.Status, status) {
		return nil
	}
	written := object.DeepCopy()
	written.Status = *status
	if err := c.Client.Status().Patch(ctx, written, client.MergeFrom(object), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of AdvancedCronJob %s: %w", client.ObjectKeyFromObject(object), err))
	}
	c.Metrics.StatusWritten(Kind().Kind)
	known.wrote(written.ResourceVersion, "")
	known.created = false
	return nil
}

// objectChanged enqueues an object whose specification has changed.
func (c *Controller) objectChanged(_ context.Context, q controllers.Queue, before, after *v1alpha1.AdvancedCronJob, _ bool) {
	if after == nil {
		after = before
	} else if before != nil && before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return
	}
	controllers.Enqueue(q, client.ObjectKeyFromObject(after))
}

// jobChanged enqueues the object of a Job that has ended or is gone. A new one was created for the object, which is
// enqueued.
func (c *Controller) jobChanged(_ context.Context, q controllers.Queue, before, after *batchv1.Job, _ bool) {
	if before == nil {
		return
	}
	owner := metav1.GetControllerOfNoCopy(before)
	if owner == nil || owner.Kind != Kind().Kind || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return
	}
	if after != nil && cronjob.Finished(before) == cronjob.Finished(after) &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) {
		return
	}
	controllers.Enqueue(q, types.NamespacedName{Namespace: before.Namespace, Name: owner.Name})
}

// enqueueAll enqueues all objects.
func (c *Controller) enqueueAll(q controllers.Queue) {
	for _, each := range c.Objects.GetIndexer().List() {
		if object, ok := each.(client.Object); ok {
			controllers.Enqueue(q, client.ObjectKeyFromObject(object))
		}
	}
}

// Count returns what the metrics count of an object: whether the API server has refused its last Job.
func Count(object *v1alpha1.AdvancedCronJob) planning.Count {
	return planning.Count{Failing: meta.IsStatusConditionFalse(object.Status.Conditions, v1alpha1.AdvancedCronJobJobsCreated)}
}
