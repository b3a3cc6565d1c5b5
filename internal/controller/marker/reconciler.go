// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marker maintains the status and the finalizer of PodProbeMarkers. The status
// reports how many pods a marker probes and which problems it has. The finalizer keeps a
// deleted marker until its probes are removed from every plan and its marks from every pod.
package marker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/controller"
	metrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/text"
	"github.com/seamark-dev/seamark/internal/view/gather"
)

// maxNote is the maximum number of bytes of a condition's message in an event.
const maxNote = 1000

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
	// Pods and Plans enqueue pods and nodes for the controllers that write marks and plans.
	Pods, Plans *controller.Inbox
	// Refusals has the pods and nodes that these controllers cannot write.
	Refusals *controller.Refusals
	// Inbox receives markers from other controllers.
	Inbox *controller.Inbox
	// Problems has the pods that do not have all of their marks.
	Problems *controller.MarkProblems
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Shortages has what the plans leave out.
	Shortages *controller.Shortages
	// Now is the clock.
	Now func() time.Time
}

// Reconciler maintains the finalizer and status of one marker at a time.
type Reconciler struct {
	Options
	lookup   controller.Lookup
	checks   *checks
	releases *releases
	reported *reported
	recent   *apply.Recent[types.NamespacedName, v1alpha1.PodProbeMarkerStatus]
	// held are the finalizers that the cache does not have yet.
	held *apply.Recent[types.NamespacedName, struct{}]
	// started returns the time of the first reconcile.
	started func() time.Time
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options:  options,
		lookup:   controller.Lookup{Reader: options.Reader},
		checks:   newChecks(),
		releases: newReleases(),
		reported: newReported(),
		recent:   apply.NewRecent[types.NamespacedName, v1alpha1.PodProbeMarkerStatus](),
		held:     apply.NewRecent[types.NamespacedName, struct{}](),
		started:  sync.OnceValue(options.Now),
	}
}

// Reconcile adds the finalizer to a marker and updates its status. If the marker is being
// deleted, it removes the finalizer when all plans and pods are free of the marker.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	marker := &v1alpha1.PodProbeMarker{}
	err := r.Reader.Client.Get(ctx, request.NamespacedName, marker)
	switch {
	case apierrors.IsNotFound(err):
		r.checks.forget(request.NamespacedName)
		r.releases.forget(request.NamespacedName)
		r.recent.Forget(request.NamespacedName)
		r.held.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get marker %s: %w", request, err)
	}
	if marker.DeletionTimestamp != nil {
		return r.release(ctx, marker)
	}
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		return outdated(r.hold(ctx, marker))
	}
	if wait := r.checks.wait(request.NamespacedName, marker.UID, marker.Generation, r.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	result, err := outdated(r.updateStatus(ctx, marker))
	result.RequeueAfter = r.grace(marker)
	return result, err
}

// outdated ignores a stale-cache conflict, because every change of a marker enqueues it when the
// cache gets the change. It also ignores that the marker is gone.
func outdated(err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrGone) || apierrors.IsConflict(err) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) updateStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	matched, findings, err := r.check(ctx, marker)
	if err != nil {
		return err
	}
	return r.writeStatus(ctx, marker, matched, findings)
}

// writeStatus writes the status if it changes, and reports new problems in events.
func (r *Reconciler) writeStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker, matched int, findings []finding) error {
	key := client.ObjectKeyFromObject(marker)
	last := r.checks.last(key)
	current, unseen := r.recent.Unseen(key, marker.UID, marker.ResourceVersion)
	if !unseen {
		current = marker.Status
		if len(current.Conditions) == 0 {
			current.Conditions = last.dropped
		}
	}
	status := next(current, marker.Generation, matched, findings, r.Now())
	if same(current, status) {
		r.checks.reported(key, findings)
		return nil
	}
	if unseen {
		// The write would be a conflict. The marker is enqueued when the cache has the last one.
		r.checks.retry(key)
		return nil
	}
	stored, err := r.Markers.Status(ctx, marker, status)
	if err != nil {
		r.checks.retry(key)
		return err
	}
	if len(stored.Status.Conditions) == 0 {
		r.checks.dropped(key, status.Conditions)
	}
	r.checks.reported(key, findings)
	r.recent.Wrote(key, marker.UID, stored.ResourceVersion, status)
	r.Metrics.StatusWritten()
	for _, f := range news(current, last.causes, findings) {
		r.Recorder.Event(marker, corev1.EventTypeWarning, f.Reason, short(f.Message))
		log.FromContext(ctx).Info("Marker has a problem", "condition", f.Type, "reason", f.Reason, "message", f.Message)
	}
	return nil
}

// check returns the number of matched pods and the conditions of the marker.
func (r *Reconciler) check(ctx context.Context, marker *v1alpha1.PodProbeMarker) (int, []finding, error) {
	compiled, err := r.Reader.Compiler.Compile(marker)
	if err != nil {
		return 0, []finding{invalid(err), summary{}.exclusive(nil), r.applied(marker)}, nil
	}
	selected, err := r.Reader.SelectedPods(ctx, marker)
	if err != nil {
		return 0, nil, err
	}
	markers, err := r.Reader.MarkerObjects(ctx, marker.Namespace)
	if err != nil {
		return 0, nil, err
	}
	contenders := r.Reader.Compiler.All(rivals(marker, markers))
	s, err := summarize(compiled, selected, r.reported.of(client.ObjectKeyFromObject(marker)), func(pod *corev1.Pod) (plan.PodPlan, error) {
		return r.Reader.Plan(ctx, pod, contenders)
	})
	if err != nil {
		return 0, nil, err
	}
	s.addShortages(r.Shortages.Of(client.ObjectKeyFromObject(marker)))
	return s.matched, append(s.findings(marker), r.applied(marker)), nil
}

// short truncates the message to maxNote bytes at a character boundary.
func short(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return text.Truncate(message, maxNote) + "..."
}
