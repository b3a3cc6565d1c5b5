// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverless sets the annotations that tell the providers of virtual nodes what to
// probe. It handles what the webhook cannot know when a pod is created: a marker that is
// created or edited later, a pod that is bound to a node with a kubelet, and a call of the
// webhook that failed. It writes to a pod at most once per change.
package serverless

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

// Pods writes annotations, as apply.Pods does.
type Pods interface {
	Handover(ctx context.Context, pod *corev1.Pod, annotations serverless.Annotations) (string, error)
}

// Options are the dependencies of a Reconciler. All are required.
type Options struct {
	// Reader reads pods, markers and nodes from the cache.
	Reader gather.Reader
	// Pods writes.
	Pods Pods
	// Inbox receives pods from other controllers.
	Inbox *controller.Inbox
}

// Reconciler sets the annotations of one pod at a time.
type Reconciler struct {
	Options
	lookup controller.Lookup
	recent *apply.Recent[types.NamespacedName, serverless.Annotations]
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		lookup:  controller.Lookup{Reader: options.Reader},
		recent:  apply.NewRecent[types.NamespacedName, serverless.Annotations](),
	}
}

// Reconcile corrects the annotations of the requested pod with at most one write. It does
// not change those of an ending pod.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, err := r.Reader.LivePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod == nil {
		r.recent.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	current, unseen := r.recent.Unseen(request.NamespacedName, pod.UID, pod.ResourceVersion)
	if !unseen {
		current = serverless.Of(pod)
	}
	desired, err := r.desired(ctx, pod, current)
	if err != nil || desired == current {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.write(ctx, pod, desired)
}

// desired returns the annotations that the pod should have, given those that it has.
func (r *Reconciler) desired(ctx context.Context, pod *corev1.Pod, current serverless.Annotations) (serverless.Annotations, error) {
	place, err := r.Reader.Place(ctx, pod)
	if err != nil {
		return current, err
	}
	switch {
	case place == view.PlaceKubelet:
		return serverless.Annotations{}, nil
	case place == view.PlaceUnknown && (pod.Spec.NodeName != "" || current == serverless.Annotations{}):
		// A pod that the webhook did not annotate is annotated when it is bound.
		return current, nil
	}
	planned, err := r.Reader.ProviderPlan(ctx, pod)
	if err != nil {
		return current, err
	}
	desired, err := serverless.Encode(planned.Probes)
	if err != nil {
		return current, reconcile.TerminalError(err)
	}
	return desired, nil
}

func (r *Reconciler) write(ctx context.Context, pod *corev1.Pod, desired serverless.Annotations) error {
	key := client.ObjectKeyFromObject(pod)
	version, err := r.Pods.Handover(ctx, pod, desired)
	switch {
	case errors.Is(err, apply.ErrGone):
		r.recent.Forget(key)
		return nil
	case apierrors.IsInvalid(err):
		// The annotations are too large. A retry cannot succeed, but the next edit may.
		return reconcile.TerminalError(err)
	case err != nil:
		return err
	}
	r.recent.Wrote(key, pod.UID, version, desired)
	log.FromContext(ctx).V(logging.Writes).Info("Annotated pod for provider", "markers", desired.Markers)
	return nil
}
