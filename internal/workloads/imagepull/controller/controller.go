// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller runs ImagePullJobs, which share the places for pulls of the nodes and of the cluster.
package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

const (
	// foreignFinalizer is the finalizer with which OpenKruise waits for its copies of Secrets.
	foreignFinalizer = "apps.kruise.io/deletion-protection"
	// exceeded is what API servers say about a pod that a quota does not permit, whatever it requests.
	exceeded = "exceeded quota"
	// noServiceAccount is what API servers say about a service account that does not exist yet: controllers create the
	// default one of a new namespace.
	noServiceAccount = "error looking up service account"
)

type (
	job    = v1alpha1.ImagePullJob
	status = v1alpha1.ImagePullJobStatus
	plan   = planning.JobPlan[status]
)

// Limits are where and how often jobs may pull.
type Limits struct {
	// Allowed selects the nodes on which jobs may pull.
	Allowed labels.Selector
	// PerNode and Total are the maximum numbers of pulls of a node and of the cluster.
	PerNode, Total int
}

// puller plans the jobs.
type puller struct {
	nodejob.Options
	allowed labels.Selector
	places  *places
	// counted is done when places has the pods that exist at the start.
	counted sync.Once
	// inbox receives the jobs that may start more pulls.
	inbox controllers.Inbox
}

// planState is what the plans of a job keep.
type planState struct {
	progress *imagepull.Progress
	// pulls is the number of its pods at the last plan.
	pulls int
	// reserves is whether its pods request cpu and memory, because the API server has refused one that does not.
	reserves bool
}

// Controller runs ImagePullJobs.
type Controller = nodejob.Controller[*job, status, planState]

// New returns the controller.
func New(options nodejob.Options, limits Limits) *Controller {
	p := &puller{Options: options, allowed: limits.Allowed, places: newPlaces(limits.PerNode, limits.Total)}
	return nodejob.New(nodejob.Descriptor[*job, status, planState]{
		GroupVersionKind: imagepull.Kind(),
		New:              func() *job { return &job{} },
		Status:           func(j *job) *status { return &j.Status },
		Conditions:       func(s *status) *[]metav1.Condition { return &s.Conditions },
		Created:          v1alpha1.ImagePullJobPullsCreated,
		StatusFirst:      true,
		Ended:            ended,
		Plan:             p.plan,
		Learn:            learn,
		Stop:             p.stop,
		Sources: func(informers cache.Cache) []source.Source {
			return []source.Source{source.Kind(informers, &corev1.Pod{}, controllers.Changes(p.podChanged)), p.inbox.Source()}
		},
	}, options)
}

func ended(j *job) bool { return j.Status.CompletionTime != nil }

// plan plans for a job, and takes places for the pulls that can start.
func (p *puller) plan(j *job, pods []*corev1.Pod, s *planState, _ int) (plan, error) {
	p.counted.Do(p.count)
	nodes, err := p.nodes(j)
	if err != nil {
		return plan{}, err
	}
	if s.progress == nil {
		s.progress = imagepull.Restore(j, nodes)
	}
	s.pulls = len(pods)
	next := imagepull.New(imagepull.Input{Job: j, Nodes: nodes, Pods: pods, Progress: s.progress, Now: p.Now()})
	if next.Remove {
		return next.JobPlan, nil
	}
	granted, others := p.places.take(claimOf(j), nodesOf(pods), next.Start, next.Limit)
	p.inbox.Enqueue(others...)
	for _, start := range granted {
		pod := imagepull.Pod(j, start.Node, start.Attempt)
		if s.reserves {
			pod = imagepull.Reserve(pod)
		}
		next.Creates = append(next.Creates, pod)
	}
	return next.JobPlan, nil
}

// learn records which pulls have started, and which nodes have failed because the API server has refused their pods. A
// quota that the pulls of the job may use up, and a service account that does not exist yet, fail none. Pods that request
// nothing are tried again with requests, which a LimitRange, a quota or a policy may demand.
func learn(s *planState, done *plan, outcome *apply.Outcome) (learned bool) {
	if !s.reserves {
		before := len(outcome.Failures)
		outcome.Failures = slices.DeleteFunc(outcome.Failures, func(f planning.Failure) bool { return maySucceedWithRequests(f.Err) })
		s.reserves = len(outcome.Failures) < before
		learned = s.reserves
	}
	written, refused := sets.New(outcome.Written...), map[string]error{}
	for i := range outcome.Failures {
		err := outcome.Failures[i].Err
		final := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsAlreadyExists(err) ||
			apierrors.IsForbidden(err) && s.pulls+len(outcome.Written) == 0 && !strings.Contains(err.Error(), noServiceAccount)
		if final {
			refused[outcome.Failures[i].Object] = err
		}
	}
	for _, pod := range done.Creates {
		if written.Has(pod.Name) {
			s.progress.Created(pod.Spec.NodeName)
		} else if err := refused["pod "+pod.Name]; err != nil {
			s.progress.Refused(pod.Spec.NodeName, err)
			learned = true
		}
	}
	return learned
}

// maySucceedWithRequests reports whether the API server may accept the pod of a pull if it requests cpu and memory. Webhooks
// that refuse a pod answer with any of these codes.
func maySucceedWithRequests(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && !strings.Contains(err.Error(), exceeded) && !strings.Contains(err.Error(), noServiceAccount)
}

// stop removes the finalizer of OpenKruise. The pulls of a job keep their places until their pods are gone.
func (p *puller) stop(ctx context.Context, key types.NamespacedName, j *job) (reconcile.Result, error) {
	if j == nil {
		p.inbox.Enqueue(p.places.leave(key)...)
		return reconcile.Result{}, nil
	}
	if j.DeletionTimestamp == nil || p.Pause.Active() {
		return reconcile.Result{}, nil
	}
	if controllerutil.ContainsFinalizer(j, foreignFinalizer) {
		kept := j.DeepCopy()
		controllerutil.RemoveFinalizer(kept, foreignFinalizer)
		patch := client.MergeFromWithOptions(j, client.MergeFromWithOptimisticLock{})
		if err := p.Client.Patch(ctx, kept, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("remove the finalizer of ImagePullJob %s: %w", key, err)
		}
	}
	// The deletion of a pod is an event.
	_, others := p.places.take(claimOf(j), nodesOf(reconciler.Controlled[*corev1.Pod](p.Stores.Pods, owner.Of(imagepull.Kind(), j))), nil, 0)
	p.inbox.Enqueue(others...)
	return reconcile.Result{}, nil
}

// count records the places of the pods that exist at the start.
func (p *puller) count() {
	for _, j := range reconciler.All[*job](p.Stores.Sets) {
		p.places.take(claimOf(j), nodesOf(reconciler.Controlled[*corev1.Pod](p.Stores.Pods, owner.Of(imagepull.Kind(), j))), nil, 0)
	}
}

// claimOf returns the claim of a job. A job that a set owns belongs to a rollout.
func claimOf(j *job) imagepull.Claim {
	return imagepull.Claim{Job: client.ObjectKeyFromObject(j), Rollout: metav1.GetControllerOfNoCopy(j) != nil, Created: j.CreationTimestamp.Time}
}

func nodesOf(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
	}
	return names
}

// nodes returns the nodes of a job.
func (p *puller) nodes(j *job) ([]*corev1.Node, error) {
	if ended(j) {
		return nil, nil
	}
	var pods []*corev1.Pod
	if j.Spec.PodSelector != nil {
		pods = reconciler.Namespaced[*corev1.Pod](p.Stores.Pods, j.Namespace)
	}
	nodes, err := imagepull.Nodes(j, p.allowed, reconciler.All[*corev1.Node](p.Stores.Nodes), pods)
	if err != nil {
		return nil, fmt.Errorf("select the nodes of ImagePullJob %s: %w", client.ObjectKeyFromObject(j), err)
	}
	return nodes, nil
}

// podChanged enqueues the jobs that select nodes by the pods of the namespace when a pod that is not a pull comes, goes, or
// has other labels.
func (p *puller) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, initial bool) {
	if initial || before != nil && after != nil && before.Spec.NodeName == after.Spec.NodeName && before.Status.Phase == after.Status.Phase &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) && maps.Equal(before.Labels, after.Labels) {
		return
	}
	pod := after
	if pod == nil {
		pod = before
	}
	if owner.Is(metav1.GetControllerOfNoCopy(pod), imagepull.Kind().GroupKind()) {
		return
	}
	for _, j := range reconciler.Namespaced[*job](p.Stores.Sets, pod.Namespace) {
		if j.Spec.PodSelector != nil && !ended(j) {
			controllers.EnqueueAt(q, client.ObjectKeyFromObject(j), nodejob.NodesPause, 0)
		}
	}
}
