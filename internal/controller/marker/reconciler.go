// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marker keeps what PodProbeMarkers themselves carry: the status, which says
// how many pods a marker probes and what is wrong with it, and the finalizer, which
// holds it until its probes are out of every plan and its marks are off every pod.
package marker

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

// recheck is how soon a marker that can't be released yet is looked at again.
const recheck = 200 * time.Millisecond

// maxNote is the most bytes of a condition's message that an event takes.
const maxNote = 1000

// Markers writes markers, as apply.Markers does.
type Markers interface {
	Status(ctx context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error)
	Finalizers(ctx context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) error
}

// Options are what a Reconciler works with. All are required.
type Options struct {
	// Cache reads pods, markers and NodePodProbes. What it returns is not changed.
	Cache client.Reader
	// Markers writes.
	Markers Markers
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
	// Serverless is whether providers probe the pods of virtual kubelets.
	Serverless bool
	// Recorder records events on markers.
	Recorder record.EventRecorder
	// Metrics counts the writes.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time
}

// Reconciler keeps one marker's finalizer and status at a time.
type Reconciler struct {
	Options
	prober controller.Prober
	looks  *looks
	recent *apply.Recent[types.NamespacedName, v1alpha1.PodProbeMarkerStatus]
}

// New returns a Reconciler that has looked at no marker yet.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		prober: controller.Prober{
			Cache: options.Cache, Compiler: options.Compiler, Defaults: options.Defaults, Serverless: options.Serverless,
		},
		looks:  newLooks(),
		recent: apply.NewRecent[types.NamespacedName, v1alpha1.PodProbeMarkerStatus](),
	}
}

// Reconcile puts the finalizer on a marker and keeps its status, or, when the marker is
// being deleted, takes the finalizer off once nothing of it is left anywhere.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	marker := &v1alpha1.PodProbeMarker{}
	err := r.Cache.Get(ctx, request.NamespacedName, marker)
	switch {
	case apierrors.IsNotFound(err):
		r.looks.forget(request.NamespacedName)
		r.recent.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading marker %s: %w", request, err)
	}
	if marker.DeletionTimestamp != nil {
		return r.release(ctx, marker)
	}
	if !controllerutil.ContainsFinalizer(marker, v1alpha1.PodProbeMarkerFinalizer) {
		held := marker.DeepCopy()
		controllerutil.AddFinalizer(held, v1alpha1.PodProbeMarkerFinalizer)
		// The write brings the marker back here, for its status.
		return r.setFinalizers(ctx, marker, held.Finalizers)
	}
	if wait := r.looks.wait(request.NamespacedName, marker.UID, marker.Generation, r.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return outdated(r.updateStatus(ctx, marker))
}

func (r *Reconciler) setFinalizers(ctx context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) (reconcile.Result, error) {
	return outdated(r.Markers.Finalizers(ctx, marker, finalizers))
}

// outdated makes no error of a write that came too late.
func outdated(err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, apply.ErrGone):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		// The cache is behind; the change that it waits for may be of no other interest.
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) updateStatus(ctx context.Context, marker *v1alpha1.PodProbeMarker) error {
	matched, conditions, err := r.look(ctx, marker)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(marker)
	current, unseen := r.recent.Unseen(key, marker.UID, marker.ResourceVersion)
	if !unseen {
		current = marker.Status
		if len(current.Conditions) == 0 {
			current.Conditions = r.looks.dropped(key)
		}
	}
	status := next(current, marker.Generation, matched, conditions, r.Now())
	if same(current, status) {
		return nil
	}
	stored, err := r.Markers.Status(ctx, marker, status)
	if err != nil {
		r.looks.again(key)
		return err
	}
	if len(stored.Status.Conditions) == 0 {
		r.looks.setDropped(key, status.Conditions)
	}
	r.recent.Wrote(key, marker.UID, stored.ResourceVersion, status)
	r.Metrics.StatusWritten()
	for _, condition := range news(current, status) {
		r.Recorder.Event(marker, corev1.EventTypeWarning, condition.Reason, short(condition.Message))
		log.FromContext(ctx).Info("Marker has a problem", "condition", condition.Type, "reason", condition.Reason, "message", condition.Message)
	}
	return nil
}

// look works out what the status says.
func (r *Reconciler) look(ctx context.Context, marker *v1alpha1.PodProbeMarker) (int, []metav1.Condition, error) {
	compiled, err := r.Compiler.Compile(marker)
	if err != nil {
		return 0, []metav1.Condition{invalid(err), summary{}.exclusive(nil)}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(marker.Spec.Selector)
	if err != nil {
		return 0, nil, fmt.Errorf("compiling the selector of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	var selected corev1.PodList
	err = r.Cache.List(ctx, &selected, client.InNamespace(marker.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return 0, nil, fmt.Errorf("listing the pods of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	var markers v1alpha1.PodProbeMarkerList
	if err := r.Cache.List(ctx, &markers, client.InNamespace(marker.Namespace)); err != nil {
		return 0, nil, fmt.Errorf("listing the markers of namespace %s: %w", marker.Namespace, err)
	}
	contenders := r.Compiler.All(rivals(marker, markers.Items))
	s, err := summarize(compiled, selected.Items, func(pod *corev1.Pod) (plan.PodPlan, error) {
		planned, _, err := r.prober.Plan(ctx, pod, contenders)
		return planned, err
	})
	if err != nil {
		return 0, nil, err
	}
	return s.matched, s.conditions(marker), nil
}

// short cuts the message to what an event takes, between two characters.
func short(message string) string {
	if len(message) <= maxNote {
		return message
	}
	return text.Truncate(message, maxNote) + "..."
}
