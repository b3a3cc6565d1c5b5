// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guardlimit releases pods from guards that have protected them for longer than the annotation
// seamark.dev/guard-max-duration says, with a label, and removes the label when they are to be guarded again or are not guarded.
package guardlimit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

const (
	// pause is how long the changes of the guards of a namespace are collected, and how long a write waits for the cache.
	pause = time.Second
	// refusedPause is the time between two writes that the API server refuses.
	refusedPause = 10 * time.Minute
)

// Pods writes the label, as apply.Pods does.
type Pods interface {
	GuardExempt(ctx context.Context, pod *corev1.Pod, exempt bool) (string, error)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, and what their marks depend on, from the cache.
	Reader gather.Reader
	// Budgets are the guards, as guard.Trim returns them.
	Budgets gather.Store
	// Marked has the pods whose marks or states may have changed.
	Marked *controllers.Inbox
	// Excluded are namespaces whose pods are not written.
	Excluded []string
	// Pods writes.
	Pods Pods
	// Recorder records events on pods and guards.
	Recorder record.EventRecorder
	// Metrics counts the releases.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler sets the label of one pod at a time.
type Reconciler struct {
	Options
	parser *mark.Parser
}

// New returns a Reconciler.
func New(options Options) *Reconciler { return &Reconciler{options, mark.NewParser()} }

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "guardlimit", controllers.SubjectPod, r, concurrency,
		source.Kind(informers, &policyv1.PodDisruptionBudget{}, controllers.Changes(r.guardChanged)),
		source.Kind(informers, &corev1.Pod{}, controllers.Changes(r.podChanged)),
		r.Marked.Feed(func(q controllers.Queue, pod types.NamespacedName) {
			if r.limited(pod.Namespace) {
				controllers.Enqueue(q, pod)
			}
		}))
}

// guardChanged enqueues the pods of the namespace, also if the guard is gone, and reports an invalid maximum. Guards without a maximum
// cost nothing where no other one has it, and those of the start have the events of the pods.
func (r *Reconciler) guardChanged(ctx context.Context, q controllers.Queue, before, after *policyv1.PodDisruptionBudget, initial bool) {
	if before != nil && after != nil && before.UID == after.UID && before.Generation == after.Generation && maps.Equal(before.Annotations, after.Annotations) {
		return
	}
	changed := before
	if after != nil {
		changed = after
		if _, err := guard.MaxDuration(after); err != nil {
			r.Recorder.Event(after, corev1.EventTypeWarning, v1alpha1.EventReasonGuardInvalid, err.Error()+". The guard has no maximum.")
		}
	}
	annotated := func(budget *policyv1.PodDisruptionBudget) bool { return budget != nil && len(budget.Annotations) > 0 }
	if initial || !annotated(before) && !annotated(after) && !r.limited(changed.Namespace) {
		return
	}
	for _, pod := range affected.LogError(r.Reader.NamespacePods(ctx, changed.Namespace))(ctx) {
		controllers.EnqueueAt(q, client.ObjectKeyFromObject(pod), pause, 0)
	}
}

// podChanged enqueues a pod of a namespace with a limit, and one that still has the label without one.
func (r *Reconciler) podChanged(_ context.Context, q controllers.Queue, before, after *corev1.Pod, _ bool) {
	if after == nil || before != nil && before.UID == after.UID && before.Status.Phase == after.Status.Phase && maps.Equal(before.Labels, after.Labels) &&
		before.Status.StartTime.Equal(after.Status.StartTime) {
		return
	}
	if after.Labels[v1alpha1.GuardExemptKey] == v1alpha1.GuardExemptMaxDuration || r.limited(after.Namespace) {
		controllers.Enqueue(q, client.ObjectKeyFromObject(after))
	}
}

// limited reports whether a guard of the namespace may have a maximum.
func (r *Reconciler) limited(namespace string) bool {
	return slices.ContainsFunc(r.budgets(namespace), func(budget *policyv1.PodDisruptionBudget) bool { return len(budget.Annotations) > 0 })
}

func (r *Reconciler) budgets(namespace string) []*policyv1.PodDisruptionBudget {
	// The index exists, so there is no error.
	found, _ := r.Budgets.GetIndexer().ByIndex(toolscache.NamespaceIndex, namespace)
	var budgets []*policyv1.PodDisruptionBudget
	for _, each := range found {
		if budget, ok := each.(*policyv1.PodDisruptionBudget); ok {
			budgets = append(budgets, budget)
		}
	}
	return budgets
}

// Reconcile sets or removes the label of the requested pod. It does not write a pod that is ending.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, err := r.Reader.LivePod(ctx, request.NamespacedName)
	if err != nil || pod == nil || slices.Contains(r.Excluded, pod.Namespace) {
		return reconcile.Result{}, err
	}
	transitions, err := r.transitions(ctx, pod)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := guard.Limits(r.budgets(pod.Namespace)).Decide(pod, transitions, r.Now())
	if !decision.Release && !decision.Hold {
		return reconcile.Result{RequeueAfter: decision.Wait}, nil
	}
	_, err = r.Pods.GuardExempt(ctx, pod, decision.Release)
	switch {
	case errors.Is(err, apply.ErrGone):
		return reconcile.Result{}, nil
	case errors.Is(err, apply.ErrOutdated):
		return reconcile.Result{RequeueAfter: pause}, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		log.FromContext(ctx).Error(err, "API server refused label of pod", "label", v1alpha1.GuardExemptKey)
		return reconcile.Result{RequeueAfter: refusedPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if limit := decision.Limit; decision.Release {
		r.Metrics.GuardReleased()
		r.Recorder.Eventf(pod, corev1.EventTypeWarning, v1alpha1.EventReasonGuardReleased,
			"Label %s is set: PodDisruptionBudget %s has guarded the pod since %s, for its maximum of %s.",
			v1alpha1.GuardExemptKey, limit.Guard, limit.Since.UTC().Format(time.RFC3339), limit.Max)
	}
	log.FromContext(ctx).Info("Changed label of pod", "label", v1alpha1.GuardExemptKey, "set", decision.Release, "guard", decision.Limit.Guard)
	return reconcile.Result{RequeueAfter: decision.Wait}, nil
}

// transitions returns since when the marks of the pod are as they are.
func (r *Reconciler) transitions(ctx context.Context, pod *corev1.Pod) ([]guard.Transition, error) {
	owned, err := r.parser.Owned(pod)
	if err != nil {
		return nil, err
	}
	markers, err := r.Reader.MarkersOf(ctx, pod.Namespace, pod.Labels)
	if err != nil {
		return nil, err
	}
	view, err := r.Reader.Pod(ctx, pod, markers)
	return view.Transitions(owned), err
}
