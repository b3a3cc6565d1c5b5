// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

// updatedPod returns a pod whose container was restarted with another name of the same image.
func updatedPod(image, container string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 2, Annotations: map[string]string{
			pub.InPlaceUpdateStateKey: `{"revision":"r2","updateTimestamp":"2026-01-01T00:00:00Z",` +
				`"lastContainerStatuses":{"main":{"imageID":"sha256:1","containerID":"containerd://1","image":"busybox:1"}}}`,
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "busybox:2",
			Env: []corev1.EnvVar{
				{Name: "PLAIN", Value: "x"},
				{Name: "MODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['mode']"}}},
			},
		}}},
		Status: corev1.PodStatus{
			ObservedGeneration: 2,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: image, ImageID: "sha256:1", ContainerID: container, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{
					StartedAt: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 5, 0, time.UTC)),
				}},
			}},
		},
	}
}

// TestTrimmedPodsOfUpdates checks that planners decide the same about a pod from the cache as about
// the complete one.
func TestTrimmedPodsOfUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		done bool
	}{
		"the old container":     {updatedPod("busybox:1", "containerd://1"), false},
		"a restarted container": {updatedPod("busybox:2", "containerd://2"), true},
		"an older observed version": {func() *corev1.Pod {
			p := updatedPod("busybox:2", "containerd://2")
			p.Status.ObservedGeneration = 1
			return p
		}(), false},
	} {
		t.Run(name, func(t *testing.T) {
			trimmed := trimPod(nil)(test.pod)
			if got := inplace.Done(test.pod); got != test.done {
				t.Errorf("complete pod: done %t, want %t", got, test.done)
			}
			if got := inplace.Done(trimmed); got != test.done {
				t.Errorf("trimmed pod: done %t, want %t", got, test.done)
			}
		})
	}
	for what, change := range map[string]func(*corev1.PodTemplateSpec){
		"label": func(p *corev1.PodTemplateSpec) { p.Labels["mode"] = "new" },
		"resource": func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		},
	} {
		pod := updatedPod("", "")
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{
			Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}},
		})
		from := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mode": "old"}}, Spec: pod.Spec}
		to := from.DeepCopy()
		change(to)
		if change, why := inplace.Between(from, to).Decide(trimPod(nil)(pod)); change != nil {
			t.Errorf("a variable reads the changed %s: got a change in place, reason %q", what, why)
		}
	}
}
