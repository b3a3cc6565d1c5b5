// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverless keeps the annotations by which the providers of virtual kubelets are
// told what to probe. It makes good what the webhook can't know when a pod is made: a
// marker that comes or changes later, a node that has a kubelet after all, and a webhook
// that was not reached. A pod costs at most one write a change.
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

	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/logging"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Pods writes annotations, as apply.Pods does.
type Pods interface {
	Handover(ctx context.Context, pod *corev1.Pod, annotations serverless.Annotations) (string, error)
}

// Options are what a Reconciler works with. All are required.
type Options struct {
	// Cache reads pods, markers and the metadata of nodes. What it returns is not changed.
	Cache client.Reader
	// Pods writes.
	Pods Pods
	// Compiler compiles markers.
	Compiler *plan.Compiler
	// Defaults are for the fields that a marker leaves unset.
	Defaults plan.Defaults
}

// Reconciler keeps the annotations of one pod at a time.
type Reconciler struct {
	Options
	recent *apply.Recent[types.NamespacedName, serverless.Annotations]
}

// New returns a Reconciler that has written nothing yet.
func New(options Options) *Reconciler {
	return &Reconciler{
		Options: options,
		recent:  apply.NewRecent[types.NamespacedName, serverless.Annotations](),
	}
}

// Reconcile makes the annotations of the pod named by the request what they should be,
// with at most one write. An ending pod keeps those it has.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, lives, err := controller.LivePod(ctx, r.Cache, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !lives {
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

// desired returns the annotations that the pod should have, of which it has the current.
func (r *Reconciler) desired(ctx context.Context, pod *corev1.Pod, current serverless.Annotations) (serverless.Annotations, error) {
	place, err := controller.PlaceOf(ctx, r.Cache, pod)
	if err != nil {
		return current, err
	}
	switch {
	case place == controller.PlaceKubelet:
		return serverless.Annotations{}, nil
	case place == controller.PlaceUnknown && (pod.Spec.NodeName != "" || current == serverless.Annotations{}):
		// A pod that the webhook passed over is annotated once it is bound.
		return current, nil
	}
	markers, err := controller.Markers(ctx, r.Cache, r.Compiler, pod.Namespace)
	if err != nil {
		return current, err
	}
	desired, err := serverless.Encode(serverless.Compile(pod, markers, r.Defaults).Probes)
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
		// Annotations that are too large: another try can't help, the next edit may.
		return reconcile.TerminalError(err)
	case err != nil:
		return err
	}
	r.recent.Wrote(key, pod.UID, version, desired)
	log.FromContext(ctx).V(logging.Writes).Info("Handed probes to the pod's provider", "markers", desired.Markers)
	return nil
}
