// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonsets_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
)

// testPreDownload pulls the images of an update that is paused, on the nodes that it reaches, and then updates.
func testPreDownload(t *testing.T) {
	w := newWorld(t, 3).create(func(set *v1alpha1.DaemonSet) {
		set.Annotations = map[string]string{v1alpha1.PreDownloadParallelismKey: "100%"}
		rolling(set, func(r *v1alpha1.RollingUpdateDaemonSet) { r.Paused, r.Partition = new(true), number(1) })
	})
	w.images("agent:1", "agent:1", "agent:1")
	jobs := func(want int, check func(*v1alpha1.ImagePullJob) error) {
		t.Helper()
		w.until(fmt.Sprintf("%d jobs exist", want), func() error {
			list := &v1alpha1.ImagePullJobList{}
			w.List(list)
			if len(list.Items) != want {
				return fmt.Errorf("%d jobs", len(list.Items))
			}
			var errs []error
			for i := range list.Items {
				errs = append(errs, check(&list.Items[i]))
			}
			return errors.Join(errs...)
		})
	}
	pulledOn := func(n int32) func(*v1alpha1.ImagePullJob) error {
		return func(job *v1alpha1.ImagePullJob) error {
			return await.ErrorIf(job.Spec.Image != "agent:2" || job.Status.Succeeded != n || job.Status.CompletionTime == nil, "job %+v", job.Status)
		}
	}
	w.setImage("agent:2")
	jobs(1, pulledOn(2))
	w.has("PreDownloading", corev1.ConditionFalse, "Pulled")
	w.images("agent:1", "agent:1", "agent:1")
	// More nodes: the job is created again.
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = number(0) })
	jobs(1, pulledOn(3))
	w.edit(func(set *v1alpha1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = nil })
	w.images("agent:2", "agent:2", "agent:2")
	jobs(0, nil)
}
