// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/await"
)

// TestPodOfAnOldRevisionIsRecreated deletes a pod that the partition keeps at the old revision. The update has removed the
// template of its claim, and a finalizer of the hook preDelete keeps the pod until the program of the hook acts.
func TestPodOfAnOldRevisionIsRecreated(t *testing.T) {
	const finalizer = "example.com/drain"
	w := newWorld(t)
	set := w.statefulSet("db", 1, withData(w.storageClass("fast", true)), func(set *v1beta1.StatefulSet) {
		set.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{FinalizersHandler: []string{finalizer}}}
		set.Spec.Template.Finalizers = []string{finalizer}
		set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	w.settled(set, 1, "image:1")
	w.Patch(set, `{"spec": {"volumeClaimTemplates": [], "updateStrategy": {"rollingUpdate": {"partition": 1}},
		"template": {"spec": {"containers": [{"name": "main", "image": "image:2"}]}}}}`)
	var deleted types.UID
	w.Shows(set, "the update begins", func() error {
		if pod := w.stored("db")["db-0"]; pod != nil {
			deleted = pod.UID
		}
		return await.ErrorIf(set.Status.UpdateRevision == set.Status.CurrentRevision || deleted == "", "no update revision")
	})
	pod := &corev1.Pod{ObjectMeta: w.Meta("db-0")}
	w.Delete(pod)
	w.Until("the pod is prepared for its deletion", func() error {
		pod := w.stored("db")["db-0"]
		return await.ErrorIf(pod == nil || pod.Labels[pub.LifecycleStateKey] != string(pub.LifecycleStatePreparingDelete), "pod %+v", pod)
	})
	w.Patch(pod, `{"metadata": {"finalizers": null}}`)
	w.Until("the pod is created again with its claim", func() error {
		pod := w.stored("db")["db-0"]
		return await.ErrorIf(pod == nil || pod.UID == deleted || pod.Spec.Containers[0].Image != "image:1" ||
			len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil, "pod %+v", pod)
	})
	w.Patch(pod, `{"metadata": {"finalizers": null}}`)
}
