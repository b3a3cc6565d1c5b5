// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podmark keeps the marks of every pod: those that the states reported of its
// planned probes call for, and no others of Seamark's. A pod costs at most one write a
// change, and none while its marks are right. A mark that OpenKruise has made costs one
// more when it goes.
package podmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/mark"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
)

// recheck is how soon a pod is looked at again whose cached version is too old.
const recheck = 50 * time.Millisecond

// Pods writes marks, as apply.Pods does.
type Pods interface {
	Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error)
	Remove(ctx context.Context, pod *corev1.Pod, keys []mark.Key) (string, error)
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
	// Serverless is whether providers probe the pods of virtual kubelets.
	Serverless bool
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler keeps the marks of one pod at a time.
type Reconciler struct {
	Options
	prober   controller.Prober
	arrivals *arrivals
	recent   *apply.Recent[types.NamespacedName, mark.Marks]
}

// New returns a Reconciler that has seen no report yet.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		prober: controller.Prober{
			Cache: options.Cache, Compiler: options.Compiler, Defaults: options.Defaults, Serverless: options.Serverless,
		},
		arrivals: newArrivals(),
		recent:   apply.NewRecent[types.NamespacedName, mark.Marks](),
	}
}

// change is what a pod's marks are and what they should be.
type change struct {
	// owned are the marks of ours that the pod has, desired those that it should have.
	owned, desired mark.Marks
	// leftover are keys to take off that OpenKruise owns.
	leftover []mark.Key
}

func (c change) isNone() bool { return len(c.leftover) == 0 && c.desired.Equal(c.owned) }

// tell logs which marks were set to something else, and which were taken off.
func (c change) tell(lines logr.Logger) {
	if !lines.Enabled() || c.desired.Equal(c.owned) {
		return
	}
	var set, removed []string
	for _, key := range c.desired.Keys() {
		if alone := sets.New(key); !c.desired.Only(alone).Equal(c.owned.Only(alone)) {
			set = append(set, key.String())
		}
	}
	for _, key := range c.owned.Keys() {
		if !c.desired.Has(key) {
			removed = append(removed, key.String())
		}
	}
	message := "Marked pod"
	if len(c.desired) == 0 {
		message = "Unmarked pod"
	}
	lines.Info(message, "set", set, "removed", removed)
}

// Reconcile makes the marks of the pod named by the request what they should be. An
// ending pod keeps the marks it has.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	arrived, reported := r.arrivals.take(request.NamespacedName)
	pod, lives, err := controller.LivePod(ctx, r.Cache, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !lives {
		r.recent.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	change, err := r.marks(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	if change.isNone() {
		return reconcile.Result{}, nil
	}
	if err := r.apply(ctx, pod, change); err != nil {
		if reported {
			r.arrivals.note(request.NamespacedName, arrived)
		}
		return outdated(err)
	}
	if reported {
		r.Metrics.Marked(r.Now().Sub(arrived))
	}
	return reconcile.Result{}, nil
}

// outdated makes no error of a write that the cache was too old for.
func outdated(err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrOutdated) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{}, err
}

// marks compares the marks that the pod has with those that it should have.
func (r *Reconciler) marks(ctx context.Context, pod *corev1.Pod) (change, error) {
	owned, unseen := r.recent.Unseen(client.ObjectKeyFromObject(pod), pod.UID, pod.ResourceVersion)
	inherited, err := mark.Inherited(pod.ManagedFields)
	if err == nil && !unseen {
		owned, err = mark.Owned(pod)
	}
	if err != nil {
		return change{}, fmt.Errorf("finding the marks that are on the pod: %w", err)
	}
	markers, err := controller.Markers(ctx, r.Cache, r.Compiler, pod.Namespace)
	if err != nil {
		return change{}, err
	}
	probes, report, err := r.prober.Probed(ctx, pod, markers)
	if err != nil {
		return change{}, err
	}
	desired := mark.Desired(probes, report, owned)
	return change{
		owned: owned, desired: desired,
		leftover: mark.Leftover(inherited, probes, report, owned, desired),
	}, nil
}

func (r *Reconciler) apply(ctx context.Context, pod *corev1.Pod, change change) error {
	key := client.ObjectKeyFromObject(pod)
	version, err := r.write(ctx, pod, change)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.recent.Forget(key)
		r.Metrics.MarksApplied(metrics.MarkGone)
		return nil
	case errors.Is(err, apply.ErrOutdated):
		return err
	case err != nil:
		r.Metrics.MarksApplied(metrics.MarkFailed)
		return err
	}
	r.recent.Wrote(key, pod.UID, version, change.desired)
	r.Metrics.MarksApplied(metrics.MarkWritten)
	change.tell(log.FromContext(ctx).V(logging.Writes))
	return nil
}

// write takes the leftover keys off before it applies: once an apply has dropped a key,
// nothing tells any more that it was ours.
func (r *Reconciler) write(ctx context.Context, pod *corev1.Pod, change change) (version string, err error) {
	if len(change.leftover) > 0 {
		version, err = r.Pods.Remove(ctx, pod, change.leftover)
		if err != nil {
			return "", err
		}
		log.FromContext(ctx).V(logging.Writes).Info("Removed marks of OpenKruise from pod", "marks", change.leftover)
	}
	if change.desired.Equal(change.owned) {
		return version, nil
	}
	return r.Pods.Marks(ctx, pod, change.desired)
}
