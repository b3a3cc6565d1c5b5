// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs BroadcastJobs: it carries out the plans of package broadcastjob. It creates pods, whose names
// are those of their nodes, so that a creation whose answer is lost is found and not repeated.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// cachePause is the time between two looks at a cache that does not have the controller's own writes yet.
	cachePause = 20 * time.Millisecond
	// planPause is the time between two plans of a job, which read all nodes: many pods may change at the same time.
	planPause = 100 * time.Millisecond
	// statusPause is the time between two writes of the status of a job that goes on.
	statusPause = time.Second
	// refusedPause is when pods are created again after the API server has refused one, for example because of a quota.
	refusedPause = 5 * time.Second
)

// Options are the dependencies of a Controller. All are required.
type Options struct {
	// Jobs, Pods and Nodes are the informers of BroadcastJobs, of pods with reconciler.PodIndexers, and of nodes.
	Jobs, Pods, Nodes reconciler.Store
	// Gate is closed while another program serves the kind.
	Gate *reconciler.Gate
	// Executor writes pods.
	Executor *apply.Executor
	// Client writes, and Live reads without the cache.
	Client client.Client
	Live   client.Reader
	// Recorder records events on the jobs.
	Recorder record.EventRecorder
	// Metrics count writes.
	Metrics reconciler.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Controller runs the jobs.
type Controller struct {
	Options
	memory *reconciler.Memory[remembered]
}

// New returns a Controller.
func New(options Options) *Controller {
	return &Controller{Options: options, memory: reconciler.NewMemory[remembered]()}
}

// Add runs the Controller under the manager, with at most concurrency jobs at a time.
func (c *Controller) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "broadcastjob", reconciler.SubjectSet, c, concurrency,
		source.Kind(informers, &v1alpha1.BroadcastJob{}, controllers.Changes(c.jobChanged)),
		source.Kind(informers, &corev1.Pod{}, controllers.Changes(c.podChanged)),
		source.Kind(informers, &corev1.Node{}, controllers.Changes(c.nodeChanged)),
		c.Gate.Source(c.enqueueAll))
}

// Reconcile does what is due for a job.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found, _, _ := c.Jobs.GetIndexer().GetByKey(request.String())
	job, ok := found.(*v1alpha1.BroadcastJob)
	if !ok || job.DeletionTimestamp != nil || !c.Gate.Open() {
		c.memory.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	known := c.memory.Of(job)
	if pause := known.planned.Add(planPause).Sub(c.Now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if err := c.find(ctx, job, known); err != nil {
		return reconcile.Result{}, err
	}
	if reconciler.Behind(c.Jobs, known.job) || reconciler.Behind(c.Pods, known.pods) {
		c.Metrics.Waited(broadcastjob.Kind().Kind)
		return reconcile.Result{RequeueAfter: cachePause}, nil
	}
	known.planned = c.Now()
	plan := broadcastjob.New(broadcastjob.Input{
		Job: job, Nodes: reconciler.All[*corev1.Node](c.Nodes), Pods: reconciler.Controlled[*corev1.Pod](c.Pods, job.UID),
		Left: known.left, Taken: known.taken, Now: known.planned,
	})
	if plan.Remove {
		return reconcile.Result{}, c.remove(ctx, job)
	}
	failed := c.carryOut(ctx, job, known, &plan)
	if err := errors.Join(c.publish(ctx, job, known, &plan), failed); err != nil {
		return reconcile.Result{}, err
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(c.Now()), time.Nanosecond)}, nil
}

// publish writes the status, at most once per second unless it is urgent, and records the events of the plan.
func (c *Controller) publish(ctx context.Context, job *v1alpha1.BroadcastJob, known *remembered, plan *broadcastjob.Plan) error {
	if equality.Semantic.DeepEqual(&job.Status, &plan.Status) {
		return nil
	}
	if at := known.written.Add(statusPause); !plan.Urgent && c.Now().Before(at) {
		plan.Wake(at)
		return nil
	}
	written := job.DeepCopy()
	written.Status = plan.Status
	if err := c.Client.Status().Patch(ctx, written, client.MergeFrom(job), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of BroadcastJob %s: %w", client.ObjectKeyFromObject(job), err))
	}
	c.Metrics.StatusWritten(broadcastjob.Kind().Kind)
	known.job, known.written = written.ResourceVersion, c.Now()
	for _, event := range plan.StatusEvents {
		c.Recorder.Event(job, event.Type, event.Reason, event.Message())
	}
	return nil
}

// remove deletes a job whose time has passed.
func (c *Controller) remove(ctx context.Context, job *v1alpha1.BroadcastJob) error {
	err := c.Client.Delete(ctx, job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		c.Metrics.Failed(broadcastjob.Kind().Kind)
		return fmt.Errorf("delete BroadcastJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}

// Count returns what the metrics count of a job: whether the API server has refused its last pod.
func Count(job *v1alpha1.BroadcastJob) planning.Count {
	return planning.Count{Failing: meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.BroadcastJobPodsCreated)}
}
