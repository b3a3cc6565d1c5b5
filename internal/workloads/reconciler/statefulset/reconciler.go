// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statefulset runs StatefulSets of apps.kruise.io: each reconcile executes the next step of one set.
package statefulset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/statefulset"
)

// Kind returns the kind of the sets.
func Kind() schema.GroupVersionKind { return statefulset.Kind() }

// Reconciler runs StatefulSets.
type Reconciler struct{ workload.Base }

// New returns a Reconciler. It sets the kind and the parts of the options, and that sizes of claims matter.
func New(options workload.Options) *Reconciler {
	options.Kind, options.Parts, options.ClaimSizes = Kind(), parts, true
	return &Reconciler{Base: workload.NewBase(options)}
}

// Add runs the Reconciler under the manager, with at most concurrency sets at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return r.Base.Add(mgr, informers, "statefulset", &v1beta1.StatefulSet{}, r, concurrency)
}

// Reconcile executes the next step of the set.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set, observed, err := workload.Observe[*v1beta1.StatefulSet](ctx, &r.Base, request.NamespacedName)
	if set == nil || err != nil {
		return r.Wait(request), err
	}
	now := r.Now()
	plan, err := statefulset.Plan(statefulset.Input{
		Set: set, Pods: observed.Pods, Claims: observed.Claims, Revisions: observed.Revisions, Encoder: observed.Encoder,
		Markers: observed.Markers, Now: now,
	})
	if err != nil {
		status := statefulset.Unplanned(set, err, now)
		return reconcile.Result{}, r.Unplanned(ctx, set, err, &set.Status, &status)
	}
	step := r.Execute(ctx, set, &plan.Actions)
	status := statefulset.Failed(set, plan.Status, step.Failures, now)
	return r.Finish(ctx, set, &plan.Actions, &step, workload.Status{
		Before: &set.Status, After: &status, Settled: plan.Settled(set),
	})
}

func parts(object client.Object) workload.Parts {
	set, ok := object.(*v1beta1.StatefulSet)
	if !ok {
		return workload.Parts{Template: &corev1.PodTemplateSpec{}}
	}
	return workload.Parts{Selector: set.Spec.Selector, Template: &set.Spec.Template, Claims: set.Spec.VolumeClaimTemplates}
}
