// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podmark sets the marks of pods: those that the reported states of a pod's planned
// probes require, and no others. It writes to a pod at most once per change, and not at all
// if its marks are correct. Removing a mark that another manager set too takes one more write.
package podmark

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// recheck is the delay before a pod is checked again whose cached version was too old. The check
// makes no request as long as the cache has the same version.
const recheck = 50 * time.Millisecond

// Pods writes marks, as apply.Pods does.
type Pods interface {
	Marks(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error)
	MarksOn(ctx context.Context, pod *corev1.Pod, marks mark.Marks) (string, error)
	Remove(ctx context.Context, pod *corev1.Pod, keys []mark.Key) (string, error)
	Try(ctx context.Context, pod *corev1.Pod, marks mark.Marks) error
}

// Limiter permits the writes of stale states one after the other, as nodehealth.Limiter does.
type Limiter interface {
	// Take reports whether the pod has a permit, and uses it up.
	Take(pod types.NamespacedName) bool
	// Ask enqueues the pod again when it has a permit.
	Ask(pod types.NamespacedName)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, markers, nodes, NodePodProbes and ProbeReports from the cache.
	Reader gather.Reader
	// Pods writes.
	Pods Pods
	// Live reads pods from the API server.
	Live client.Reader
	// Inbox receives pods from other controllers.
	Inbox *controllers.Inbox
	// Limiter permits the writes of stale states.
	Limiter Limiter
	// Refusals remembers the pods that cannot be written.
	Refusals *problems.Refusals
	// Problems gets the pods that do not have all of their marks.
	Problems *problems.Marks
	// Recorder records events on pods.
	Recorder record.EventRecorder
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler sets the marks of one pod at a time.
type Reconciler struct {
	Options
	// Reconciled gets each pod after it was reconciled.
	Reconciled controllers.Inbox

	parser *mark.Parser
	// reportedAt are the earliest reports that wait for the marks of a pod, for the latency.
	reportedAt   keyed.Store[types.NamespacedName, time.Time]
	expectations apply.Expectations[types.NamespacedName, mark.Marks]
	limits       limits
	refused      keyed.Store[types.NamespacedName, refused]
	// outdated are the cached versions of pods that a write found outdated, so that the write is
	// repeated only when the cache has another version.
	outdated keyed.Store[types.NamespacedName, string]
	// waits are the pods that wait for exclusive marks.
	waits     keyed.Store[types.NamespacedName, wait]
	elections elections
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		parser:  mark.NewParser(),
	}
}

// Reconcile corrects the marks of the requested pod. It does not change those of an ending
// pod, except for exclusive marks that another pod claims.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.Reconciled.Enqueue(request.NamespacedName)
	arrived, reported := r.reportedAt.Take(request.NamespacedName)
	notMarked := func() {
		if reported {
			r.noteReported(request.NamespacedName, arrived)
		}
	}
	permitted := r.Limiter.Take(request.NamespacedName)
	pod, err := r.subject(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod == nil {
		r.Inbox.Enqueue(r.elections.gone(request.NamespacedName)...)
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if outdated, found := r.outdated.Get(request.NamespacedName); found && outdated == pod.ResourceVersion {
		notMarked()
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	r.outdated.Forget(request.NamespacedName)
	change, err := r.compare(ctx, pod)
	if err != nil {
		notMarked()
		return r.failed(pod, err)
	}
	if change.isEmpty() {
		r.Refusals.Note(request.NamespacedName, nil)
		return r.requeue(request.NamespacedName, change), nil
	}
	if change.stale && !permitted && !change.view.Yields() {
		notMarked()
		r.Limiter.Ask(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if wait := r.delay(ctx, pod, change); wait > 0 {
		notMarked()
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	change, err = r.apply(ctx, pod, change)
	if err != nil {
		notMarked()
		return r.failed(pod, err)
	}
	if reported {
		r.Metrics.Marked(r.Now().Sub(arrived))
	}
	r.limits.written(request.NamespacedName, r.Now())
	return r.requeue(request.NamespacedName, change), nil
}

// failed returns the error, or a recheck of the pod if its cached version is outdated.
func (r *Reconciler) failed(pod *corev1.Pod, err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrOutdated) {
		r.outdated.Set(client.ObjectKeyFromObject(pod), pod.ResourceVersion)
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{}, err
}

// noteReported records when a state of the pod was reported, unless an earlier one waits for its marks.
func (r *Reconciler) noteReported(pod types.NamespacedName, at time.Time) {
	r.reportedAt.Update(pod, func(first *time.Time) bool {
		*first = earliest.Time(*first, at)
		return true
	})
}

// requeue records that the pod has the marks of the change. If the writes to the pod are limited,
// the pod is checked again when they may no longer be, and if marks are refused without a search,
// when a search is due.
func (r *Reconciler) requeue(pod types.NamespacedName, change change) reconcile.Result {
	now := r.Now()
	remaining := r.limits.unneeded(pod, now)
	if last, found := r.refused.Get(pod); found && change.refused.isEmpty() && !now.Before(last.until) {
		r.refused.Forget(pod)
	}
	remaining = earliest.Wait(remaining, r.noteWait(pod, change.view))
	r.publish(pod, change)
	return reconcile.Result{RequeueAfter: earliest.Wait(remaining, change.refused.due(now))}
}

// forget forgets a pod that no longer exists or is ending.
func (r *Reconciler) forget(pod types.NamespacedName) {
	r.expectations.Forget(pod)
	r.limits.pods.Forget(pod)
	r.refused.Forget(pod)
	r.outdated.Forget(pod)
	r.waits.Forget(pod)
	r.Refusals.Note(pod, nil)
	r.Problems.Set(pod, nil)
}

// compare compares the pod's marks with those that it should have. It returns ErrOutdated if marks
// must be removed and the cache does not have the last write yet: only the version after that write
// shows which of them other managers own too, and the removal drops the entry that they are compared with.
// It does so, too, if there are exclusive marks, whose write needs the version of the pod.
func (r *Reconciler) compare(ctx context.Context, pod *corev1.Pod) (change, error) {
	owned, pending := r.expectations.Pending(client.ObjectKeyFromObject(pod), pod.UID, pod.ResourceVersion)
	if !pending {
		var err error
		if owned, err = r.parser.Owned(pod); err != nil {
			return change{}, err
		}
	}
	markers, err := r.Reader.MarkersOf(ctx, pod.Namespace, pod.Labels)
	if err != nil {
		return change{}, err
	}
	v, err := r.Reader.Pod(ctx, pod, markers)
	if err != nil {
		return change{}, err
	}
	if v, err = r.contest(ctx, v, markers, owned, pending); err != nil {
		return change{}, err
	}
	all := v.Desired(owned)
	claims := v.Claims()
	change := change{owned: owned, all: all, desired: v.InGroup(owned, all), claims: claims, order: v.Plan.Probes,
		values: mark.RefusedValues(v.Plan.Probes, v.Report, owned), view: v}
	change.stale = slices.ContainsFunc(v.Plan.Probes, v.Report.IsStale)
	if last, _ := r.refused.Get(client.ObjectKeyFromObject(pod)); last.applies(pod, all, claims, r.Now()) {
		change.refused = last
		change = change.omit(last.probes, last.until, last.again)
	}
	if pending {
		_, removed := mark.Differences(owned, change.desired)
		if len(removed) > 0 || !change.isEmpty() && v.HasExclusive(change.desired) {
			return change, apply.ErrOutdated
		}
		return change, nil
	}
	isKept := func(key mark.Key) bool { return slices.Contains(change.refused.kept, key) }
	change.leftover = slices.DeleteFunc(v.Leftover(owned, v.InGroup(owned, all)), isKept)
	return change, nil
}
