// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podevents benchmarks what controllers do with events of pods.
package podevents

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/floor"
)

// Foreign benchmarks what a controller does with an event of a pod of a ReplicaSet that becomes ready, and fails if it enqueues
// anything. The floor is a copy of the pod.
func Foreign(b *testing.B, changed func(q controllers.Queue, before, after *corev1.Pod)) {
	b.Helper()
	pod := func(ready corev1.ConditionStatus) *corev1.Pod {
		return builders.Pod("shop", "web-7c5ddbdf54-8k2nx").Label("app", "web").
			Owner(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7c5ddbdf54", UID: "of-others", Controller: new(true)}).
			Condition(corev1.PodCondition{Type: corev1.PodReady, Status: ready}).Build()
	}
	before, after := pod(corev1.ConditionFalse), pod(corev1.ConditionTrue)
	after.ResourceVersion = "2"
	after.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true}}
	q := &counter{}
	floor.Compare(b, "x_of_copy", func() { changed(q, before, after) }, func() { after.DeepCopy() })
	if q.requests > 0 {
		b.Fatalf("the events of a pod of others have enqueued %d requests", q.requests)
	}
}

// counter counts the requests that are added, also those that are added after a time. Other methods panic.
type counter struct {
	controllers.Queue
	requests int
}

func (c *counter) Add(reconcile.Request) { c.requests++ }

func (c *counter) AddAfter(reconcile.Request, time.Duration) { c.requests++ }
