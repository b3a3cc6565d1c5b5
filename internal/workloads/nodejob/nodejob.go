// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodejob runs jobs that create a pod per node: BroadcastJobs and ImagePullJobs. It carries out their plans. The
// names of their pods are deterministic, so that a creation whose answer is lost is found and not repeated.
package nodejob

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// cachePause is the time between two looks at a cache that does not have the controller's own writes yet.
	cachePause = 20 * time.Millisecond
	// planPause is the time between two plans of a job, which read all nodes: many pods may change at the same time.
	planPause = 50 * time.Millisecond
	// statusPause is the time between two writes of the status of a job that goes on.
	statusPause = time.Second
	// refusedPause is when pods are created again after the API server has refused one, for example because of a quota.
	refusedPause = 5 * time.Second
)

// Options are the dependencies of a Controller. All are required.
type Options struct {
	// Options have the informers of the jobs, as Sets, of the pods and of the nodes.
	reconciler.Options
	// Live reads without the cache.
	Live client.Reader
}

// Descriptor describes a kind of jobs. J is the type of a job, S that of its status, and M that of what its plans keep.
type Descriptor[J client.Object, S, M any] struct {
	// GroupVersionKind is the kind, and New returns an empty job.
	schema.GroupVersionKind
	New func() J
	// Status returns the status of a job, and Conditions the conditions of a status.
	Status     func(job J) *S
	Conditions func(status *S) *[]metav1.Condition
	// Created is the type of the condition that is False if the API server has refused the last pod.
	Created string
	// StatusFirst is whether the status is written before pods are deleted: it remembers what became of them.
	StatusFirst bool
	// Ended reports whether the nodes do not matter to a job any more.
	Ended func(job J) bool
	// Plan plans with the pods of a job, all that were created. left is how many of those that the last plan wanted were not.
	Plan func(job J, pods []*corev1.Pod, state *M, left int) (planning.JobPlan[S], error)
	// Learn records in the state what became of the writes of a plan. It reports whether the next plan is another one although the API
	// server has refused pods.
	Learn func(state *M, plan *planning.JobPlan[S], outcome *apply.Outcome) bool
	// Stop is called for a job that is gone, is being deleted or that another program serves. It may be nil.
	Stop func(ctx context.Context, key types.NamespacedName, job J) (reconcile.Result, error)
	// Sources are those of other events. It may be nil.
	Sources func(informers cache.Cache) []source.Source
}

// Controller runs the jobs of a kind.
type Controller[J client.Object, S, M any] struct {
	Options
	descriptor   Descriptor[J, S, M]
	expectations reconciler.ExpectationStore[expectations[M]]
}

// expectations are the writes for a job that the cache does not show yet, and what else is kept between its reconciles.
type expectations[M any] struct {
	// state is that of the plans.
	state M
	// job and pods are the resource versions that were written last, empty if none were.
	job, pods string
	// unsure are the names of the pods whose creation was not answered, and left is the number of pods of the last plan that
	// were not created.
	unsure []string
	left   int
	// planned and written are when the last plan was made and when the status was written.
	planned, written time.Time
}

// New returns a Controller.
func New[J client.Object, S, M any](descriptor Descriptor[J, S, M], options Options) *Controller[J, S, M] {
	return &Controller[J, S, M]{Options: options, descriptor: descriptor}
}

// Add runs the Controller under the manager, with at most concurrency jobs at a time.
func (c *Controller[J, S, M]) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	sources := []source.Source{
		source.Kind(informers, c.descriptor.New(), controllers.Specs[J]()),
		source.Kind(informers, &corev1.Pod{}, controllers.Changes(c.podChanged)),
		source.Kind(informers, &corev1.Node{}, controllers.Changes(c.nodeChanged)),
		c.Pause.Source(reconciler.EnqueueAll(c.Stores.Sets)),
		reconciler.GrantSource(informers, c.Stores.Sets),
	}
	if c.descriptor.Sources != nil {
		sources = append(sources, c.descriptor.Sources(informers)...)
	}
	return controllers.Add(mgr, strings.ToLower(c.descriptor.Kind), reconciler.SubjectSet, c, concurrency, sources...)
}

// Progress returns what the metrics count of each job: whether the API server has refused its last pod.
func (c *Controller[J, S, M]) Progress() []planning.Progress {
	return reconciler.ProgressOfAll(c.Stores.Sets, func(job J) planning.Progress {
		return planning.Refused(*c.descriptor.Conditions(c.descriptor.Status(job)), c.descriptor.Created)
	})
}

// Reconcile does what is due for a job.
func (c *Controller[J, S, M]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found, _, _ := c.Stores.Sets.GetIndexer().GetByKey(request.String())
	job, ok := found.(J)
	if !ok || job.GetDeletionTimestamp() != nil || c.Pause.Active() {
		c.expectations.Forget(request.NamespacedName)
		if c.descriptor.Stop == nil {
			return reconcile.Result{}, nil
		}
		return c.descriptor.Stop(ctx, request.NamespacedName, job)
	}
	if isolated, result, err := reconciler.Isolated(ctx, c.Client, c.Recorder, c.Now(), c.descriptor.GroupVersionKind, job); isolated {
		return result, err
	}
	expected := c.expectations.Get(job)
	if pause := expected.planned.Add(planPause).Sub(c.Now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if err := c.find(ctx, job.GetNamespace(), expected); err != nil {
		return reconcile.Result{}, err
	}
	if reconciler.Behind(c.Stores.Sets, expected.job) || reconciler.Behind(c.Stores.Pods, expected.pods) {
		c.Metrics.Waited(c.descriptor.Kind)
		return reconcile.Result{RequeueAfter: cachePause}, nil
	}
	expected.planned = c.Now()
	pods := reconciler.Controlled[*corev1.Pod](c.Stores.Pods, owner.Of(c.descriptor.GroupVersionKind, job))
	plan, err := c.descriptor.Plan(job, pods, &expected.state, expected.left)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if plan.Remove {
		return reconcile.Result{}, c.remove(ctx, job)
	}
	c.record(job, plan.Events)
	if c.descriptor.StatusFirst && len(plan.Deletes) > 0 {
		plan.Urgent = true
		if job, err = c.publish(ctx, job, expected, &plan); err != nil {
			return reconcile.Result{}, err
		}
	}
	failed := c.carryOut(ctx, job, expected, &plan)
	if _, err = c.publish(ctx, job, expected, &plan); err != nil || failed != nil {
		return reconcile.Result{}, errors.Join(err, failed)
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: planning.Until(plan.Next, c.Now())}, nil
}
