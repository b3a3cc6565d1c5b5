// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is what the controllers below it have in common: how one runs under
// the manager, and how it reads pods, markers and reports from the informers.
package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
)

// NodeNameField is the field by which the informers must index pods.
const NodeNameField = "spec.nodeName"

// timeout bounds one reconcile, whatever became of the connection to the API server.
const timeout = 30 * time.Second

// Queue holds what a controller is asked to look at.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Add runs r under the manager, with at most concurrency reconciles at once. It follows
// its sources only while the manager leads: a queue that nobody works on would keep the
// name of everything that ever changed, and the informers, which are warm in every
// manager, tell a new leader all that there is. A failure slows down what failed alone, from 10 milliseconds to 30 seconds:
// there is no overall limit. Each line of the log of a reconcile names its subject.
func Add(mgr manager.Manager, name string, subject Subject, r reconcile.Reconciler, concurrency int, sources ...source.Source) error {
	c, err := controller.New(name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrency,
		ReconciliationTimeout:   timeout,
		LogConstructor:          subject.logs(mgr.GetLogger().WithValues("controller", name)),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			10*time.Millisecond, 30*time.Second),
	})
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", name, err)
	}
	for _, src := range sources {
		if err := c.Watch(src); err != nil {
			return fmt.Errorf("watching for the controller %s: %w", name, err)
		}
	}
	return nil
}

// Subject is what the requests of a controller name, as a key of log lines.
type Subject string

// The subjects. Pods and markers are named namespace/name.
const (
	SubjectNode   Subject = "node"
	SubjectPod    Subject = "pod"
	SubjectMarker Subject = "marker"
)

// logs returns what makes the logger of a request. Without a request, the lines are those
// of a controller that starts and ends.
func (s Subject) logs(log logr.Logger) func(*reconcile.Request) logr.Logger {
	return func(request *reconcile.Request) logr.Logger {
		switch {
		case request == nil:
			return log.V(logging.Decisions)
		case request.Namespace == "":
			return log.WithValues(string(s), request.Name)
		default:
			return log.WithValues(string(s), request.String())
		}
	}
}

// LivePod returns the pod of the name, and whether it is there and not ending.
func LivePod(ctx context.Context, cache client.Reader, name types.NamespacedName) (*corev1.Pod, bool, error) {
	pod := &corev1.Pod{}
	err := cache.Get(ctx, name, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod, !plan.Ending(pod), nil
}

// Markers returns the namespace's markers, but for those that can't be followed.
func Markers(ctx context.Context, cache client.Reader, compiler *plan.Compiler, namespace string) ([]*plan.Marker, error) {
	var found v1alpha1.PodProbeMarkerList
	if err := cache.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the markers of namespace %s: %w", namespace, err)
	}
	return compiler.All(found.Items), nil
}

// MarkersOrNone is Markers for what handles events and can't fail: it logs an error.
func MarkersOrNone(ctx context.Context, cache client.Reader, compiler *plan.Compiler, namespace string) []*plan.Marker {
	markers, err := Markers(ctx, cache, compiler, namespace)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding what an event concerns")
	}
	return markers
}

// Report returns what the agent of the pod's node says of the pod: nothing where the pod
// is not bound, or its node has no NodePodProbe.
func Report(ctx context.Context, cache client.Reader, pod *corev1.Pod) (mark.PodReport, error) {
	if pod.Spec.NodeName == "" {
		return mark.PodReport{}, nil
	}
	npp := &v1alpha1.NodePodProbe{}
	err := cache.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, npp)
	switch {
	case apierrors.IsNotFound(err):
		return mark.PodReport{}, nil
	case err != nil:
		return mark.PodReport{}, fmt.Errorf("reading the report of node %s: %w", pod.Spec.NodeName, err)
	}
	return mark.ReportOf(npp, pod.UID), nil
}

// SameMarker tells whether both versions of a marker ask for the same: they are one object
// of one generation, and neither or both are being deleted.
func SameMarker(before, after *v1alpha1.PodProbeMarker) bool {
	return before.UID == after.UID && before.Generation == after.Generation &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil)
}
