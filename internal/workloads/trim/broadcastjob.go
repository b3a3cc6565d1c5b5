// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

// PodWithBroadcasts is like trim. It also keeps how far the pod of a BroadcastJob is, and its node.
func PodWithBroadcasts(trim func(*corev1.Pod) *corev1.Pod) func(*corev1.Pod) *corev1.Pod {
	return func(pod *corev1.Pod) *corev1.Pod {
		kept := trim(pod)
		if !owner.Is(metav1.GetControllerOfNoCopy(pod), schema.GroupKind{Group: v1alpha1.GroupName, Kind: "BroadcastJob"}) {
			return kept
		}
		kept.Labels = pod.Labels // Guards select by them.
		kept.DeletionTimestamp, kept.Status.Phase = pod.DeletionTimestamp, pod.Status.Phase
		kept.Spec.NodeName, kept.Spec.RestartPolicy, kept.Spec.ActiveDeadlineSeconds = pod.Spec.NodeName, pod.Spec.RestartPolicy, pod.Spec.ActiveDeadlineSeconds
		if required := nodefit.Required(pod.Spec.Affinity); required != nil && pod.Spec.NodeName == "" {
			kept.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}
		if restarts := Restarts(pod); restarts > 0 && Restarts(kept) != restarts {
			kept.Status.InitContainerStatuses, kept.Status.ContainerStatuses = nil, []corev1.ContainerStatus{{RestartCount: restarts}}
		}
		return kept
	}
}

// Restarts returns how often the containers of a pod have restarted.
func Restarts(pod *corev1.Pod) int32 {
	var sum int32
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			sum += statuses[i].RestartCount
		}
	}
	return sum
}
