// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	w.patch(set, `{"spec": {"volumeClaimTemplates": [], "updateStrategy": {"rollingUpdate": {"partition": 1}},
		"template": {"spec": {"containers": [{"name": "main", "image": "image:2"}]}}}}`)
	var deleted types.UID
	await.Until(w, "the update begins", func(ctx context.Context) (string, error) {
		pods, err := w.pods(ctx, "db")
		if err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "db"}, set); err != nil {
			return "", err
		}
		if pod := pods["db-0"]; pod != nil {
			deleted = pod.UID
		}
		if set.Status.UpdateRevision == set.Status.CurrentRevision || deleted == "" {
			return "no update revision", err
		}
		return "", err
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db-0"}}
	w.must(w.client.Delete(w.Context(), pod))
	await.Until(w, "the pod is prepared for its deletion", func(ctx context.Context) (string, error) {
		pods, err := w.pods(ctx, "db")
		if pod := pods["db-0"]; pod == nil || pod.Labels[pub.LifecycleStateKey] != string(pub.LifecycleStatePreparingDelete) {
			return fmt.Sprintf("pod %+v", pod), err
		}
		return "", err
	})
	w.patch(pod, `{"metadata": {"finalizers": null}}`)
	await.Until(w, "the pod is created again with its claim", func(ctx context.Context) (string, error) {
		pods, err := w.pods(ctx, "db")
		pod := pods["db-0"]
		switch {
		case pod == nil || pod.UID == deleted:
			return "no new pod", err
		case pod.Spec.Containers[0].Image != "image:1" || len(pod.Spec.Volumes) == 0 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil:
			return fmt.Sprintf("pod %+v", pod.Spec), err
		}
		return "", err
	})
	w.patch(pod, `{"metadata": {"finalizers": null}}`)
}
