// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs ImagePullJobs: it carries out the plans of package imagepull. It creates pods, whose names are
// those of their attempts, so that a creation whose answer is lost is found and not repeated.
package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// cachePause is the time between two looks at a cache that does not have the controller's own writes yet.
	cachePause = 20 * time.Millisecond
	// planPause is the time between two plans of a job: pods of many nodes may change at the same time.
	planPause = 20 * time.Millisecond
	// statusPause is the time between two writes of the status of a job while it pulls.
	statusPause = time.Second
	// refusedPause is when a job with pulls tries again after the API server has refused one, for example because of a
	// quota, and any job if its service account does not exist.
	refusedPause = 5 * time.Second
	// conflictPause is when a pod is deleted again that changed meanwhile.
	conflictPause = 100 * time.Millisecond
	// goingPause is when the places of the pods of a deleted job are counted again.
	goingPause = time.Second
	// foreignFinalizer is the finalizer with which OpenKruise waits for its copies of Secrets.
	foreignFinalizer = "apps.kruise.io/deletion-protection"
)

// Options are the dependencies of a Controller. All are required.
type Options struct {
	// Jobs, Pods and Nodes are the informers of ImagePullJobs, of pods with reconciler.PodIndexers, and of nodes.
	Jobs, Pods, Nodes reconciler.Store
	// Allowed selects the nodes on which jobs may pull.
	Allowed labels.Selector
	// PerNode and Total are the maximum numbers of pulls of a node and of the cluster.
	PerNode, Total int
	// Gate is closed while another program serves the kind.
	Gate *reconciler.Gate
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
	places *places
	// counted is done when places has the pods that exist at the start.
	counted sync.Once
	// inbox receives the jobs that may start more pulls.
	inbox controllers.Inbox
}

// New returns a Controller.
func New(options Options) *Controller {
	return &Controller{Options: options, memory: reconciler.NewMemory[remembered](), places: newPlaces(options.PerNode, options.Total)}
}

// Add runs the Controller under the manager, with at most concurrency jobs at a time.
func (c *Controller) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "imagepulljob", reconciler.SubjectSet, c, concurrency,
		source.Kind(informers, &v1alpha1.ImagePullJob{}, controllers.Changes(c.jobChanged)),
		source.Kind(informers, &corev1.Pod{}, controllers.Changes(c.podChanged)),
		source.Kind(informers, &corev1.Node{}, controllers.Changes(c.nodeChanged)),
		c.inbox.Source(), c.Gate.Source(c.enqueueAll))
}

// Reconcile does what is due for a job, and comes back at the next timeout.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c.counted.Do(c.count)
	job := c.job(request.NamespacedName)
	if job == nil || job.DeletionTimestamp != nil || !c.Gate.Open() {
		return c.stop(ctx, request.NamespacedName, job)
	}
	known := c.memory.Of(job)
	if pause := known.planned.Add(planPause).Sub(c.Now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if err := c.find(ctx, job, known); err != nil {
		return reconcile.Result{}, err
	}
	if reconciler.Behind(c.Jobs, known.job) || reconciler.Behind(c.Pods, known.pods) {
		c.Metrics.Waited(imagepull.Kind().Kind)
		return reconcile.Result{RequeueAfter: cachePause}, nil
	}
	nodes, err := c.nodes(job)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if known.progress == nil {
		known.progress = imagepull.Restore(job, nodes)
	}
	pods := reconciler.Controlled[*corev1.Pod](c.Pods, job.UID)
	known.planned = c.Now()
	plan := imagepull.New(imagepull.Input{Job: job, Nodes: nodes, Pods: pods, Progress: known.progress, Now: known.planned})
	if plan.Remove {
		return reconcile.Result{}, c.remove(ctx, job)
	}
	if len(plan.Delete) > 0 {
		// While the status does not say how a pull has ended, its pod does.
		if job, err = c.write(ctx, job, known, &plan.Status); err != nil {
			return reconcile.Result{}, err
		}
	}
	failed := c.carryOut(ctx, job, known, pods, &plan)
	if err := c.publish(ctx, job, known, &plan); err != nil {
		return reconcile.Result{}, err
	}
	if failed != nil {
		c.Metrics.Failed(imagepull.Kind().Kind)
		return reconcile.Result{}, failed
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(c.Now()), time.Nanosecond)}, nil
}

// job returns the job in the cache, or nil.
func (c *Controller) job(key types.NamespacedName) *v1alpha1.ImagePullJob {
	found, _, _ := c.Jobs.GetIndexer().GetByKey(key.String())
	job, _ := found.(*v1alpha1.ImagePullJob)
	return job
}

// stop forgets a job that is gone, is being deleted or that another program serves. Its pulls keep their places until
// their pods are gone.
func (c *Controller) stop(ctx context.Context, key types.NamespacedName, job *v1alpha1.ImagePullJob) (reconcile.Result, error) {
	if job == nil {
		c.memory.Forget(key)
		c.inbox.Enqueue(c.places.leave(key)...)
		return reconcile.Result{}, nil
	}
	c.memory.Forget(key)
	if job.DeletionTimestamp == nil || !c.Gate.Open() {
		return reconcile.Result{}, nil
	}
	if controllerutil.ContainsFinalizer(job, foreignFinalizer) {
		kept := job.DeepCopy()
		controllerutil.RemoveFinalizer(kept, foreignFinalizer)
		patch := client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})
		if err := c.Client.Patch(ctx, kept, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("remove the finalizer of ImagePullJob %s: %w", key, err)
		}
	}
	pods := reconciler.Controlled[*corev1.Pod](c.Pods, job.UID)
	_, others := c.places.take(claimOf(job), nodesOf(pods), nil, 0)
	c.inbox.Enqueue(others...)
	if len(pods) > 0 {
		return reconcile.Result{RequeueAfter: goingPause}, nil
	}
	return reconcile.Result{}, nil
}

// count records the places of the pods that exist at the start.
func (c *Controller) count() {
	for _, each := range c.Jobs.GetIndexer().List() {
		if job, ok := each.(*v1alpha1.ImagePullJob); ok {
			c.places.take(claimOf(job), nodesOf(reconciler.Controlled[*corev1.Pod](c.Pods, job.UID)), nil, 0)
		}
	}
}

// claimOf returns the claim of a job. A job that a set owns belongs to a rollout.
func claimOf(job *v1alpha1.ImagePullJob) imagepull.Claim {
	return imagepull.Claim{
		Job: client.ObjectKeyFromObject(job), Rollout: metav1.GetControllerOfNoCopy(job) != nil, Created: job.CreationTimestamp.Time,
	}
}

func nodesOf(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
	}
	return names
}

// nodes returns the nodes of a job.
func (c *Controller) nodes(job *v1alpha1.ImagePullJob) ([]*corev1.Node, error) {
	if job.Status.CompletionTime != nil {
		return nil, nil
	}
	var pods []*corev1.Pod
	if job.Spec.PodSelector != nil {
		found, _ := c.Pods.GetIndexer().ByIndex(toolscache.NamespaceIndex, job.Namespace)
		pods = typed[*corev1.Pod](found)
	}
	nodes, err := imagepull.Nodes(job, c.Allowed, reconciler.All[*corev1.Node](c.Nodes), pods)
	if err != nil {
		return nil, fmt.Errorf("select the nodes of ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nodes, nil
}

func typed[T any](all []any) []T {
	found := make([]T, 0, len(all))
	for _, each := range all {
		if object, ok := each.(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// publish writes the status, at most once per second unless it is urgent, and records the events of the plan.
func (c *Controller) publish(ctx context.Context, job *v1alpha1.ImagePullJob, known *remembered, plan *imagepull.Plan) error {
	at := known.written.Add(statusPause)
	if due := plan.Urgent || !c.Now().Before(at); due {
		if _, err := c.write(ctx, job, known, &plan.Status); err != nil {
			return err
		}
	} else if !equality.Semantic.DeepEqual(&job.Status, &plan.Status) {
		plan.Wake(at)
	}
	for _, event := range plan.Events {
		c.Recorder.Event(job, event.Type, event.Reason, event.Message)
	}
	return nil
}

// write writes the status if it differs, and returns the job with it.
func (c *Controller) write(ctx context.Context, job *v1alpha1.ImagePullJob, known *remembered, status *v1alpha1.ImagePullJobStatus) (*v1alpha1.ImagePullJob, error) {
	if equality.Semantic.DeepEqual(&job.Status, status) {
		return job, nil
	}
	written := job.DeepCopy()
	status.DeepCopyInto(&written.Status)
	if err := c.Client.Status().Patch(ctx, written, client.MergeFrom(job), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return job, client.IgnoreNotFound(fmt.Errorf("write the status of ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err))
	}
	c.Metrics.StatusWritten(imagepull.Kind().Kind)
	known.job, known.written = written.ResourceVersion, c.Now()
	return written, nil
}

// remove deletes a job whose time has passed.
func (c *Controller) remove(ctx context.Context, job *v1alpha1.ImagePullJob) error {
	err := c.Client.Delete(ctx, job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}
