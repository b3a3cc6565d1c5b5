// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podmark sets the marks of pods: those that the reported states of a pod's planned
// probes require, and no others. It writes to a pod at most once per change, and not at all
// if its marks are correct. Removing a mark that another manager set too takes one more write.
package podmark

import (
	"context"
	"errors"
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
	"github.com/seamark-dev/seamark/internal/view/gather"
)

// recheck is the delay before a pod is checked again whose cached version was too old.
const recheck = 50 * time.Millisecond

// Pods writes marks, as apply.Pods does.
type Pods interface {
	Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error)
	Remove(ctx context.Context, pod *corev1.Pod, keys []mark.Key) (string, error)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, markers, nodes and NodePodProbes from the cache.
	Reader gather.Reader
	// Pods writes.
	Pods Pods
	// Inbox receives pods from other controllers.
	Inbox *controller.Inbox
	// Refusals remembers the pods that cannot be written.
	Refusals *controller.Refusals
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler sets the marks of one pod at a time.
type Reconciler struct {
	Options
	lookup   controller.Lookup
	arrivals *arrivals
	recent   *apply.Recent[types.NamespacedName, mark.Marks]
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options:  options,
		lookup:   controller.Lookup{Reader: options.Reader},
		arrivals: newArrivals(),
		recent:   apply.NewRecent[types.NamespacedName, mark.Marks](),
	}
}

// change is the difference between a pod's marks and those that it should have.
type change struct {
	// owned are Seamark's marks on the pod. desired are those that it should have.
	owned, desired mark.Marks
	// leftover are keys to remove that other managers own.
	leftover []mark.Key
}

func (c change) isEmpty() bool { return len(c.leftover) == 0 && c.desired.Equal(c.owned) }

// log logs the marks that were set and removed.
func (c change) log(lines logr.Logger) {
	if !lines.Enabled() || c.desired.Equal(c.owned) {
		return
	}
	var set, removed []string
	for _, key := range c.desired.Keys() {
		if only := sets.New(key); !c.desired.Only(only).Equal(c.owned.Only(only)) {
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

// Reconcile corrects the marks of the requested pod. It does not change those of an ending
// pod.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	arrived, reported := r.arrivals.take(request.NamespacedName)
	pod, err := r.Reader.LivePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod == nil {
		r.recent.Forget(request.NamespacedName)
		r.Refusals.Note(request.NamespacedName, nil)
		return reconcile.Result{}, nil
	}
	change, err := r.compare(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	if change.isEmpty() {
		r.Refusals.Note(request.NamespacedName, nil)
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

// outdated turns a stale-cache conflict into a requeue.
func outdated(err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrOutdated) {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{}, err
}

// compare compares the pod's marks with those that it should have.
func (r *Reconciler) compare(ctx context.Context, pod *corev1.Pod) (change, error) {
	owned, unseen := r.recent.Unseen(client.ObjectKeyFromObject(pod), pod.UID, pod.ResourceVersion)
	if !unseen {
		var err error
		if owned, err = mark.Owned(pod); err != nil {
			return change{}, err
		}
	}
	markers, err := r.Reader.Markers(ctx, pod.Namespace)
	if err != nil {
		return change{}, err
	}
	v, err := r.Reader.Pod(ctx, pod, markers)
	if err != nil {
		return change{}, err
	}
	desired := v.Desired(owned)
	change := change{owned: owned, desired: desired}
	if !unseen {
		change.leftover = v.Leftover(owned, desired)
	}
	return change, nil
}

func (r *Reconciler) apply(ctx context.Context, pod *corev1.Pod, change change) error {
	key := client.ObjectKeyFromObject(pod)
	version, err := r.write(ctx, pod, change)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.recent.Forget(key)
		r.Refusals.Note(key, nil)
		r.Metrics.MarksApplied(metrics.MarkGone)
		return nil
	case errors.Is(err, apply.ErrOutdated):
		return err
	case err != nil:
		r.Refusals.Note(key, err)
		r.Metrics.MarksApplied(metrics.MarkFailed)
		return err
	}
	r.Refusals.Note(key, nil)
	r.recent.Wrote(key, pod.UID, version, change.desired)
	r.Metrics.MarksApplied(metrics.MarkWritten)
	change.log(log.FromContext(ctx).V(logging.Writes))
	return nil
}

// write removes the leftover keys before it applies the marks, because an apply also drops
// Seamark's ownership, which identifies them.
func (r *Reconciler) write(ctx context.Context, pod *corev1.Pod, change change) (version string, err error) {
	if len(change.leftover) > 0 {
		version, err = r.Pods.Remove(ctx, pod, change.leftover)
		if err != nil {
			return "", err
		}
		log.FromContext(ctx).V(logging.Writes).Info("Removed marks of other owners from pod", "marks", change.leftover)
	}
	if change.desired.Equal(change.owned) {
		return version, nil
	}
	return r.Pods.Marks(ctx, pod, change.desired)
}
