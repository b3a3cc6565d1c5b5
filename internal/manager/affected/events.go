// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package affected finds the objects that an event affects.
package affected

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/internal/program/controllers"
)

// NodeEvents returns a handler that calls created for every new node, and changed for every
// node that becomes a virtual node or ceases to be one. Nodes that exist at the start
// count as new, because the cache may receive a node after its pods.
func NodeEvents(created, changed func(context.Context, controllers.Queue, *metav1.PartialObjectMetadata)) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return controllers.Changes(func(ctx context.Context, q controllers.Queue, before, after *metav1.PartialObjectMetadata, _ bool) {
		switch {
		case after == nil:
		case before == nil:
			created(ctx, q, after)
		case serverless.IsVirtual(before.Labels) != serverless.IsVirtual(after.Labels):
			changed(ctx, q, after)
		}
	})
}

// LogError returns a function that returns the objects that an event affects. Event handlers cannot
// return errors, so it logs the error if there is one, and there are no objects.
func LogError[T any](objects T, err error) func(context.Context) T {
	return func(ctx context.Context) T {
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to find the objects that an event affects")
		}
		return objects
	}
}

// IsVirtual reports whether the pod runs on a virtual node.
func IsVirtual(ctx context.Context, reader gather.Reader, pod *corev1.Pod) bool {
	return LogError(reader.NodeKind(ctx, pod))(ctx) == podview.VirtualNode
}
