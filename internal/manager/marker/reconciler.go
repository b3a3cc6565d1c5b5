// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marker maintains the status and the finalizer of PodProbeMarkers. The status
// reports how many pods a marker probes, their states, and which problems it has. The finalizer keeps a
// deleted marker until its probes are removed from every plan and its marks from every pod.
//
// The unit of work is a namespace: one pass over its pods serves all of its markers that are due,
// because what a marker loses to another one is known only from the whole plan of a pod. A pass
// makes a limited number of writes, and the namespace rests after it, so that no tenant occupies
// the workers. Markers that are being deleted have a queue and workers of their own.
package marker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/manager/problems"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// maxWrites is the maximum number of markers that one pass over a namespace writes. The others wait
// for the next pass.
const maxWrites = 100

// Markers writes markers, as apply.Markers does.
type Markers interface {
	Status(ctx context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error)
	Finalizers(ctx context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) (string, error)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, markers, nodes and NodePodProbes from the cache.
	Reader gather.Reader
	// Markers writes.
	Markers Markers
	// Recorder records events on markers.
	Recorder record.EventRecorder
	// Stale receives pods whose states become stale or current, without a change of their report.
	Stale *controllers.Inbox
	// Pods and Plans enqueue pods and nodes for the controllers that write marks and plans.
	Pods, Plans *controllers.Inbox
	// Refusals has the pods and nodes that these controllers cannot write.
	Refusals *problems.Refusals
	// Problems has the pods that do not have all of their marks.
	Problems *problems.Marks
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler maintains the markers of one namespace at a time. A request has the name of a
// namespace.
type Reconciler struct {
	Options
	// parser reads the marks of pods whose states are counted.
	parser *mark.Parser
	// agenda has the markers whose status must be checked, and deleted those that are being
	// deleted.
	agenda, deleted agenda
	// recounts has those whose states changed, while nothing else did.
	recounts agenda
	checks   checks
	// delays are those of markers that are being deleted.
	delays           keyed.Store[types.NamespacedName, delay]
	expectedStatuses apply.Expectations[types.NamespacedName, v1alpha1.PodProbeMarkerStatus]
	// expectedFinalizers are the finalizers that the cache does not have yet.
	expectedFinalizers apply.Expectations[types.NamespacedName, struct{}]
	// started returns the time of the first reconcile.
	started func() time.Time
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		parser:  mark.NewParser(),
		started: sync.OnceValue(options.Now),
	}
}

// Reconcile adds the finalizer to the markers of a namespace that are due, and updates their
// status. It does nothing to markers that are being deleted: see Release.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	checked, failed := r.pass(ctx, &r.agenda, request.Name, r.check)
	recounted, err := r.pass(ctx, &r.recounts, request.Name, r.recount)
	if err = errors.Join(failed, err); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: earliest.Wait(checked.RequeueAfter, recounted.RequeueAfter)}, nil
}

// task is a marker that is due since a time.
type task struct {
	marker *v1alpha1.PodProbeMarker
	since  time.Time
}

func (t task) key() types.NamespacedName { return client.ObjectKeyFromObject(t.marker) }

// at returns an appointment to handle the marker at the time.
func (t task) at(when time.Time) appointment { return appointment{t.marker.Name, when} }

// atOrBefore returns an appointment to handle the marker at the time, or when it was due before. A
// marker that was woken was not due.
func (t task) atOrBefore(when time.Time) appointment {
	if t.since.Before(when) {
		return t.at(t.since)
	}
	return t.at(when)
}

// work handles the markers of a namespace that are due; all are those of the namespace. It returns
// those that must be handled again, and for how long it computed.
type work func(ctx context.Context, all []*v1alpha1.PodProbeMarker, due []task) (rechecks []appointment, computed time.Duration, err error)

// pass handles the markers of the namespace that are due.
func (r *Reconciler) pass(ctx context.Context, agenda *agenda, namespace string, handle work) (reconcile.Result, error) {
	due, wait := agenda.take(namespace, r.Now())
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	all, err := r.Reader.MarkerObjects(ctx, namespace)
	if err != nil {
		agenda.add(namespace, due...)
		return reconcile.Result{}, err
	}
	rechecks, computed, err := handle(ctx, all, r.tasks(namespace, all, due))
	agenda.add(namespace, rechecks...)
	wait = agenda.finish(namespace, computed, len(all) == 0, r.Now())
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// tasks returns the markers that are due, those that have waited longest first, and forgets those
// that are gone.
func (r *Reconciler) tasks(namespace string, all []*v1alpha1.PodProbeMarker, due []appointment) []task {
	since := make(map[string]time.Time, len(due))
	for _, each := range due {
		since[each.marker] = each.at
	}
	every, isEvery := since[everyMarker]
	delete(since, everyMarker)
	var tasks []task
	for _, marker := range all {
		if at, isDue := since[marker.Name]; isDue {
			tasks = append(tasks, task{marker, at})
			delete(since, marker.Name)
		} else if isEvery {
			tasks = append(tasks, task{marker, every})
		}
	}
	for gone := range since {
		r.forget(types.NamespacedName{Namespace: namespace, Name: gone})
	}
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.marker.Name, b.marker.Name))
	})
	return tasks
}

func (r *Reconciler) forget(marker types.NamespacedName) {
	r.checks.Forget(marker)
	r.delays.Forget(marker)
	r.expectedStatuses.Forget(marker)
	r.expectedFinalizers.Forget(marker)
}

// check adds the finalizer to markers that do not have it, and updates the status of the others,
// unless their last check was less than an interval ago.
func (r *Reconciler) check(ctx context.Context, _ []*v1alpha1.PodProbeMarker, due []task) (rechecks []appointment, computed time.Duration, err error) {
	start := r.Now()
	var tasks []task
	var held []*v1alpha1.PodProbeMarker
	for _, t := range due {
		if t.marker.DeletionTimestamp != nil {
			continue
		}
		if controllerutil.ContainsFinalizer(t.marker, v1alpha1.PodProbeMarkerFinalizer) {
			if wait := r.checks.wait(t.key(), t.marker.UID, t.marker.Generation, start); wait > 0 {
				rechecks = append(rechecks, t.at(start.Add(wait)))
				continue
			}
			held = append(held, t.marker)
		}
		tasks = append(tasks, t)
	}
	found, err := r.survey(ctx, held)
	var counted markerCounts
	if err == nil {
		counted, err = r.count(ctx, held)
	}
	computed = r.Now().Sub(start)
	left, err := r.writeEach(ctx, tasks, start, err, func(t task) (bool, error) {
		wrote, err := r.update(ctx, t.marker, found[t.marker.Name], counted[t.marker.Name])
		if grace := r.grace(t.marker); grace > 0 {
			rechecks = append(rechecks, t.at(r.Now().Add(grace)))
		}
		return wrote, err
	})
	return append(rechecks, left...), computed, err
}

// writeEach calls write, which reports whether it sent a request, for the markers until one pass has
// written enough. It returns those that must be handled again: also all, if err is why none can be written.
func (r *Reconciler) writeEach(ctx context.Context, tasks []task, start time.Time, err error, write func(task) (bool, error)) (rechecks []appointment, failed error) {
	writes, failures := 0, []error(nil)
	for _, t := range tasks {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || writes >= maxWrites {
			r.checks.retry(t.key())
			rechecks = append(rechecks, t.atOrBefore(start))
			continue
		}
		wrote, failure := write(t)
		if wrote {
			writes++
		}
		if failure != nil {
			failures = append(failures, failure)
			rechecks = append(rechecks, t.at(r.Now().Add(interval)))
		}
	}
	return rechecks, errors.Join(append(failures, err)...)
}

// outdated ignores a stale-cache conflict, because every change of a marker enqueues it when the
// cache gets the change. It also ignores that the marker is gone.
func outdated(err error) error {
	if errors.Is(err, apply.ErrGone) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
