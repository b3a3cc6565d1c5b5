// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package virtualpod sets the annotations that tell the providers of virtual nodes what to
// probe. It handles what the webhook cannot know when a pod is created: a marker that is
// created or edited later, a pod that is bound to a node with a kubelet, and a call of the
// webhook that failed. It writes to a pod at most once per change.
package virtualpod

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/affected"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
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
	Inbox *controllers.Inbox
}

// Reconciler sets the annotations of one pod at a time.
type Reconciler struct {
	Options
	expectations apply.Expectations[types.NamespacedName, serverless.Annotations]
}

// New returns a Reconciler.
func New(options Options) *Reconciler {
	return &Reconciler{Options: options}
}

// Reconcile corrects the annotations of the requested pod with at most one write. It does
// not change those of an ending pod.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, err := r.Reader.LivePod(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pod == nil {
		r.expectations.Forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	current, pending := r.expectations.Pending(request.NamespacedName, pod.UID, pod.ResourceVersion)
	if !pending {
		current = serverless.AnnotationsOf(pod)
	}
	desired, err := r.desired(ctx, pod, current)
	if err != nil || desired == current {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.write(ctx, pod, desired)
}

// desired returns the annotations that the pod should have, given those that it has.
func (r *Reconciler) desired(ctx context.Context, pod *corev1.Pod, current serverless.Annotations) (serverless.Annotations, error) {
	kind, err := r.Reader.NodeKind(ctx, pod)
	if err != nil {
		return current, err
	}
	switch {
	case kind == podview.KubeletNode:
		return serverless.Annotations{}, nil
	case kind == podview.UnknownNode && (pod.Spec.NodeName != "" || current == serverless.Annotations{}):
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
		r.expectations.Forget(key)
		return nil
	case apierrors.IsInvalid(err):
		// The annotations are too large. A retry cannot succeed, but the next edit may.
		return reconcile.TerminalError(err)
	case err != nil:
		return err
	}
	r.expectations.Expect(key, pod.UID, version, desired)
	log.FromContext(ctx).V(logging.Writes).Info("Annotated pod for provider", "markers", desired.Markers)
	return nil
}

// Add runs the Reconciler under the manager, with at most concurrency reconciles at a time.
func (r *Reconciler) Add(mgr manager.Manager, informers cache.Cache, concurrency int) error {
	return controllers.Add(mgr, "serverless", controllers.SubjectPod, r, concurrency,
		source.Kind(informers, &corev1.Pod{}, r.podEvents()),
		source.Kind(informers, gather.NewNode(), r.nodeEvents()),
		source.Kind(informers, &v1alpha1.PodProbeMarker{}, controllers.MarkerEvents(r.enqueueNamespacePods)),
		r.Inbox.Source())
}

// podEvents returns a handler that enqueues new pods, and pods whose annotations may have to
// change.
func (r *Reconciler) podEvents() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *corev1.Pod, _ bool) {
		switch {
		case after == nil:
			r.expectations.Forget(client.ObjectKeyFromObject(before))
		case before == nil || !sameInputs(before, after):
			r.enqueue(ctx, q, after)
		}
	})
}

// nodeEvents returns a handler that enqueues the pods of new nodes, and of nodes that become
// virtual nodes or cease to be virtual nodes.
func (r *Reconciler) nodeEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return affected.NodeEvents(r.enqueueNodePods, r.enqueueNodePods)
}

// sameInputs reports whether both versions of the pod have and need the same annotations. It
// does not compare containers, because those that matter are immutable.
func sameInputs(before, after *corev1.Pod) bool {
	return before.UID == after.UID && before.Spec.NodeName == after.Spec.NodeName &&
		serverless.AnnotationsOf(before) == serverless.AnnotationsOf(after) && maps.Equal(before.Labels, after.Labels)
}

// enqueue adds the pod if it has annotations or runs on a virtual node.
func (r *Reconciler) enqueue(ctx context.Context, q controllers.Queue, pod *corev1.Pod) {
	if serverless.AnnotationsOf(pod) != (serverless.Annotations{}) || affected.IsVirtual(ctx, r.Reader, pod) {
		controllers.Enqueue(q, client.ObjectKeyFromObject(pod))
	}
}

func (r *Reconciler) enqueueNodePods(ctx context.Context, q controllers.Queue, node *metav1.PartialObjectMetadata) {
	r.enqueueAll(ctx, q, affected.LogError(r.Reader.NodePods(ctx, node.Name))(ctx))
}

func (r *Reconciler) enqueueNamespacePods(ctx context.Context, q controllers.Queue, marker *v1alpha1.PodProbeMarker) {
	r.enqueueAll(ctx, q, affected.LogError(r.Reader.NamespacePods(ctx, marker.Namespace))(ctx))
}

func (r *Reconciler) enqueueAll(ctx context.Context, q controllers.Queue, pods []*corev1.Pod) {
	for _, pod := range pods {
		r.enqueue(ctx, q, pod)
	}
}
