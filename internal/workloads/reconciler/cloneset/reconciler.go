// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloneset runs CloneSets: each reconcile executes the next step of one set.
package cloneset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
)

// Kind returns the kind of the sets.
func Kind() schema.GroupVersionKind { return cloneset.Kind() }

// Reconciler runs CloneSets.
type Reconciler struct {
	workload.Base
	recreateForClaims bool
}

// New returns a Reconciler. It sets the kind and the parts of the options. RecreateForClaims is that of
// cloneset.Input.
func New(options workload.Options, recreateForClaims bool) *Reconciler {
	options.Kind, options.Parts = Kind(), parts
	return &Reconciler{Base: workload.NewBase(options), recreateForClaims: recreateForClaims}
}

// Add runs the Reconciler under the manager, with at most concurrency sets at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return r.Base.Add(mgr, informers, "cloneset", &v1alpha1.CloneSet{}, r, concurrency)
}

// Reconcile executes the next step of the set.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set, observed, err := workload.Observe[*v1alpha1.CloneSet](ctx, &r.Base, request.NamespacedName)
	if set == nil || err != nil {
		return r.Wait(request), err
	}
	now := r.Now()
	plan, err := cloneset.Plan(cloneset.Input{
		Set: set, Pods: observed.Pods, Claims: observed.Claims, Revisions: observed.Revisions, Encoder: observed.Encoder,
		Nodes: observed.Nodes, Markers: observed.Markers, TakenNames: observed.TakenNames, Now: now,
		RecreateForClaims: r.recreateForClaims,
	})
	if err != nil {
		status := cloneset.Unplanned(set, err, now)
		return reconcile.Result{}, r.Unplanned(ctx, set, err, &set.Status, &status)
	}
	step := r.Execute(ctx, set, &plan.Actions)
	cloneset.Failed(&plan.Status, step.Failures, now)
	return r.Finish(ctx, set, &plan.Actions, &step, workload.Status{
		Before: &set.Status, After: &plan.Status, Settled: plan.Settled(set),
	})
}

func parts(object client.Object) workload.Parts {
	set, ok := object.(*v1alpha1.CloneSet)
	if !ok {
		return workload.Parts{Template: &corev1.PodTemplateSpec{}}
	}
	return workload.Parts{Selector: set.Spec.Selector, Template: &set.Spec.Template, Claims: set.Spec.VolumeClaimTemplates}
}
