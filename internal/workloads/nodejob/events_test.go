// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package nodejob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/floor/podevents"
)

func BenchmarkPodWithoutJob(b *testing.B) {
	c := New(Descriptor[*v1alpha1.BroadcastJob, v1alpha1.BroadcastJobStatus, struct{}]{
		GroupVersionKind: v1alpha1.GroupVersion().WithKind("BroadcastJob"),
	}, Options{})
	podevents.Foreign(b, func(q controllers.Queue, before, after *corev1.Pod) {
		c.podChanged(b.Context(), q, before, after, false)
	})
}
