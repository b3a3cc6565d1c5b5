// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjobs_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/openkruise"
)

// TestTakeOver starts the program with jobs, schedules and pods that OpenKruise has stored: it writes no pod and no Job,
// and each status stays as it is. Then the jobs that have not ended go on.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, "0", "1")
	w.becomes = all("")
	jobs := openkruise.Restore(t, server.Client, w.Namespace, "BroadcastJob")
	schedules := openkruise.Restore(t, server.Client, w.Namespace, "AdvancedCronJob")
	written := func() map[string]string {
		return openkruise.Versions(t, server.Client, w.Namespace, corev1.SchemeGroupVersion.WithKind("Pod"), batchv1.SchemeGroupVersion.WithKind("Job"))
	}
	before := written()
	start(t)
	for _, object := range slices.Concat(jobs, schedules) {
		now := object.DeepCopy()
		w.Shows(now, object.GetName()+" is processed", func() error {
			observed, _, _ := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
			return await.ErrorIf(observed == 0, "not yet")
		})
	}
	expect.Equal(t, before, written(), "the take-over has written objects")
	for _, object := range slices.Concat(jobs, schedules) {
		expect.Success(t, openkruise.Changed(t, server.Client, object))
	}
	w.let(all(corev1.PodSucceeded))
	w.job = &v1alpha1.BroadcastJob{ObjectMeta: w.Meta("running")}
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
	w.job.Name = "paused"
	w.is(v1alpha1.BroadcastJobPaused, "2 0 1 0")
	w.edit(func(s *v1alpha1.BroadcastJobSpec) { s.Paused = false })
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
}
