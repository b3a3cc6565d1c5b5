// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podmark keeps the marks of every pod: those that the states reported of its
// planned probes call for, and no others of Seamark's. A pod costs at most one write a
// change, and none while its marks are right.
package podmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/mark"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
)

// Pods writes marks, as apply.Pods does.
type Pods interface {
	Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error)
}

// Options are what a Reconciler works with. All are required.
type Options struct {
	// Cache reads pods, markers and NodePodProbes. What it returns is not changed.
	Cache client.Reader
	// Pods writes.
	Pods Pods
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler keeps the marks of one pod at a time.
type Reconciler struct {
	Options
	arrivals *arrivals
	recent   *apply.Recent[types.NamespacedName, mark.Marks]
}

// New returns a Reconciler that has seen no report yet.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options:  options,
		arrivals: newArrivals(),
		recent:   apply.NewRecent[types.NamespacedName, mark.Marks](),
	}
}

// Reconcile makes the marks of the pod named by the request what they should be, with
// at most one write. An ending pod keeps the marks it has.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	arrived, reported := r.arrivals.take(request.NamespacedName)
	pod := &corev1.Pod{}
	err := r.Cache.Get(ctx, request.NamespacedName, pod)
	switch {
	case apierrors.IsNotFound(err):
		r.recent.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading pod %s: %w", request, err)
	}
	if plan.Ending(pod) {
		r.recent.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	owned, desired, err := r.marks(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	if desired.Equal(owned) {
		return reconcile.Result{}, nil
	}
	if err := r.apply(ctx, pod, desired); err != nil {
		if reported {
			r.arrivals.note(request.NamespacedName, arrived)
		}
		return reconcile.Result{}, err
	}
	if reported {
		r.Metrics.Marked(r.Now().Sub(arrived))
	}
	return reconcile.Result{}, nil
}

// marks returns the marks that the pod has of ours, and those that it should have.
func (r *Reconciler) marks(ctx context.Context, pod *corev1.Pod) (owned, desired mark.Marks, err error) {
	owned, unseen := r.recent.Unseen(client.ObjectKeyFromObject(pod), pod.UID, pod.ResourceVersion)
	if !unseen {
		if owned, err = mark.Owned(pod); err != nil {
			return owned, desired, fmt.Errorf("finding the marks that are on the pod: %w", err)
		}
	}
	markers, err := controller.Markers(ctx, r.Cache, r.Compiler, pod.Namespace)
	if err != nil {
		return owned, desired, err
	}
	report, err := controller.Report(ctx, r.Cache, pod)
	if err != nil {
		return owned, desired, err
	}
	probes := plan.Pod(pod, markers, r.Defaults).Probes
	return owned, mark.Desired(probes, report, owned), nil
}

func (r *Reconciler) apply(ctx context.Context, pod *corev1.Pod, desired mark.Marks) error {
	key := client.ObjectKeyFromObject(pod)
	version, err := r.Pods.Marks(ctx, pod, desired)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.recent.Forget(key)
		r.Metrics.MarksApplied(metrics.MarkGone)
		return nil
	case err != nil:
		r.Metrics.MarksApplied(metrics.MarkFailed)
		return err
	}
	r.recent.Wrote(key, pod.UID, version, desired)
	r.Metrics.MarksApplied(metrics.MarkWritten)
	log.FromContext(ctx).V(1).Info("Marked pod", "marks", len(desired.Keys()))
	return nil
}
